//! What a run's attempts are worth: pass@k, best-of-k, progress over steps, cost, causes of failure.
//!
//! With n attempts at a task, pass@k and best-of-k are averages over all choices of k of them, computed exactly: the
//! luck of the order does not count. An attempt without a score counts as a failed graph does, b. Tasks that eager fails on
//! are set aside: no pass can be right there, so they are counted and named, and in no share and no score.

use crate::evaluator::{GraphAssessment, Question};
use crate::run::AttemptRecord;
use crate::trajectory::Event;
use passnet_bench::score::{Parameters, geometric_mean};
use passnet_bench::verdict::VerdictKind;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// A value for a number of attempts or steps.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct At {
    /// Attempts or steps.
    pub k: usize,
    /// What they reach.
    pub value: f64,
}

/// The numbers of a run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Metrics {
    /// Its name, as in the first attempt.
    pub model: String,
    /// That were attempted.
    pub tasks: usize,
    /// Of these, by name, those that eager fails on: in no share and no score below. What they cost is in the sums.
    pub set_aside: Vec<String>,
    /// At all tasks together.
    pub attempts: usize,
    /// Attempts that have not ended yet.
    pub unfinished: usize,
    /// Share of tasks solved (all graphs right) by k attempts.
    pub pass_at: Vec<At>,
    /// Share of tasks made faster than eager (all graphs right, AS above 1) by k attempts.
    pub fast_at: Vec<At>,
    /// AS of the best of k attempts, geometric mean over tasks.
    pub best_of: Vec<At>,
    /// AS of the best version so far after each step, geometric mean over attempts.
    pub over_steps: Vec<At>,
    /// Replies.
    pub steps: u64,
    /// With a score.
    pub evaluations: usize,
    /// Of prompts, cached ones included.
    pub input_tokens: u64,
    /// Of these, from a cache.
    pub cached_tokens: u64,
    /// Of replies.
    pub output_tokens: u64,
    /// `None` where no prices are known.
    pub cost: Option<f64>,
    /// The mean.
    pub cost_per_task: Option<f64>,
    /// Seconds of models and tools, attempts added up.
    pub seconds: f64,
    /// Why attempts ended.
    pub ends: BTreeMap<String, usize>,
    /// What was wrong with the attempts that solved nothing.
    pub failures: BTreeMap<String, usize>,
}

impl Metrics {
    /// `None` without attempts.
    pub fn of(attempts: &[AttemptRecord], parameters: Parameters) -> Option<Metrics> {
        Metrics::without(&eager_fails(attempts), attempts, parameters)
    }

    /// With the tasks set aside that are known to fail, from these attempts or from others on the same device. `None` without
    /// attempts.
    pub fn without(
        aside: &BTreeSet<String>,
        attempts: &[AttemptRecord],
        parameters: Parameters,
    ) -> Option<Metrics> {
        let first = attempts.first()?;
        let all: BTreeSet<&String> = attempts.iter().map(|attempt| &attempt.start.task).collect();
        let counted: Vec<&AttemptRecord> =
            attempts.iter().filter(|attempt| !aside.contains(&attempt.start.task)).collect();
        let mut tasks: BTreeMap<&str, Vec<&AttemptRecord>> = BTreeMap::new();
        for attempt in &counted {
            tasks.entry(&attempt.start.task).or_default().push(attempt);
        }
        let most = tasks.values().map(Vec::len).min().unwrap_or(0);
        let score = |attempt: &AttemptRecord| attempt.best_score().unwrap_or(parameters.b);
        let share = |solved: &dyn Fn(&AttemptRecord) -> bool, k: usize| {
            let of_task = |attempts: &Vec<&AttemptRecord>| {
                let right = attempts.iter().filter(|attempt| solved(attempt)).count();
                pass_at(attempts.len(), right, k)
            };
            tasks.values().map(of_task).sum::<f64>() / tasks.len() as f64
        };
        let at = |value: &dyn Fn(usize) -> f64| -> Vec<At> {
            (1..=most).map(|k| At { k, value: value(k) }).collect()
        };
        let best_of = |k: usize| {
            let of_task = |attempts: &Vec<&AttemptRecord>| {
                best_of(attempts.iter().map(|attempt| score(attempt)).collect(), k)
            };
            geometric_mean(tasks.values().map(of_task)).unwrap_or(parameters.b)
        };
        let spent = attempts.iter().map(spent).fold(Sum::default(), Sum::add);
        Some(Metrics {
            model: first.start.model.name.clone(),
            tasks: all.len(),
            set_aside: all
                .iter()
                .filter(|task| aside.contains(**task))
                .map(|t| (*t).clone())
                .collect(),
            attempts: attempts.len(),
            unfinished: attempts.iter().filter(|attempt| !attempt.is_finished()).count(),
            pass_at: at(&|k| share(&AttemptRecord::is_correct, k)),
            fast_at: at(&|k| share(&|attempt| attempt.is_correct() && score(attempt) > 1.0, k)),
            best_of: at(&best_of),
            over_steps: over_steps(&counted, parameters),
            steps: spent.steps,
            evaluations: attempts.iter().map(|attempt| attempt.evaluations.len()).sum(),
            input_tokens: spent.input,
            cached_tokens: spent.cached,
            output_tokens: spent.output,
            cost: spent.cost,
            cost_per_task: spent.cost.map(|cost| cost / all.len() as f64),
            seconds: spent.seconds,
            ends: count(attempts, |attempt| {
                Some(attempt.reason().map_or("unfinished".into(), |reason| reason.to_string()))
            }),
            failures: count(counted, failure),
        })
    }
}

/// The tasks with a graph that eager fails on where these attempts were evaluated: some evaluation came to run it and said
/// so, and none got numbers of eager's. An attempt whose pass breaks the device for eager is thus found out by any other
/// that ran there. Where no pass of any attempt came so far, nothing is known, and the task counts.
pub fn eager_fails<'a>(attempts: impl IntoIterator<Item = &'a AttemptRecord>) -> BTreeSet<String> {
    let mut fails: BTreeMap<(&str, usize), bool> = BTreeMap::new();
    for attempt in attempts {
        for graph in evaluated(attempt) {
            let kind = graph.verdict.kind;
            let ran = kind.is_comparable() || graph.eager_ms.is_some();
            if ran || kind == VerdictKind::ReferenceFail {
                let known = fails.entry((&attempt.start.task, graph.graph)).or_insert(true);
                *known &= !ran;
            }
        }
    }
    fails.into_iter().filter(|(_, fails)| *fails).map(|((task, _), _)| task.to_string()).collect()
}

/// What evaluations said of each graph. Other questions are answered by the native engine, which is not the device.
fn evaluated(attempt: &AttemptRecord) -> impl Iterator<Item = &GraphAssessment> {
    let found = attempt.events.iter().filter_map(|event| match event {
        Event::Result(result) => result.assessment.as_ref(),
        _ => None,
    });
    found.filter(|found| found.question == Question::Evaluate).flat_map(|found| &found.graphs)
}

/// The chance that at least one of k attempts, drawn from n of which `right` solve the task, solves it.
pub fn pass_at(n: usize, right: usize, k: usize) -> f64 {
    if n.saturating_sub(right) < k {
        return 1.0;
    }
    // 1 - C(n - right, k) / C(n, k), without large numbers.
    1.0 - ((n - right + 1)..=n).map(|i| 1.0 - k as f64 / i as f64).product::<f64>()
}

/// The mean, over all choices of k of these scores, of the largest one.
pub fn best_of(mut scores: Vec<f64>, k: usize) -> f64 {
    scores.sort_by(f64::total_cmp);
    let (n, k) = (scores.len(), k.clamp(1, scores.len().max(1)));
    let mut mean = 0.0;
    // The chance that the i-th smallest is the largest drawn: C(i - 1, k - 1) / C(n, k), from the largest down.
    let mut chance = k as f64 / n.max(1) as f64;
    for i in (1..=n).rev() {
        mean += chance * scores[i - 1];
        if i > 1 {
            chance *= i.saturating_sub(k) as f64 / (i - 1) as f64;
        }
    }
    mean
}

fn over_steps(attempts: &[&AttemptRecord], parameters: Parameters) -> Vec<At> {
    let steps = attempts.iter().map(|attempt| attempt.steps()).max().unwrap_or(0);
    let mut best: Vec<f64> = vec![parameters.b; attempts.len()];
    let mut seen = vec![0; attempts.len()];
    (1..=steps)
        .map(|step| {
            for (index, attempt) in attempts.iter().enumerate() {
                while let Some(found) = attempt.evaluations.get(seen[index])
                    && found.step <= step
                {
                    // The first score counts even where it is below b: it is what there is.
                    let is_first = seen[index] == 0;
                    best[index] = if is_first { found.score } else { best[index].max(found.score) };
                    seen[index] += 1;
                }
            }
            let value = geometric_mean(best.iter().copied()).unwrap_or(parameters.b);
            At { k: step as usize, value }
        })
        .collect()
}

#[derive(Default)]
struct Sum {
    steps: u64,
    input: u64,
    cached: u64,
    output: u64,
    cost: Option<f64>,
    seconds: f64,
}

impl Sum {
    fn add(self, other: Sum) -> Sum {
        Sum {
            steps: self.steps + other.steps,
            input: self.input.saturating_add(other.input),
            cached: self.cached.saturating_add(other.cached),
            output: self.output.saturating_add(other.output),
            cost: match (self.cost, other.cost) {
                (None, None) => None,
                (a, b) => Some(a.unwrap_or(0.0) + b.unwrap_or(0.0)),
            },
            seconds: self.seconds + other.seconds,
        }
    }
}

/// From the events themselves: an attempt that goes on has no sum yet.
fn spent(attempt: &AttemptRecord) -> Sum {
    let of = |event: &Event| match event {
        Event::Reply(reply) => Sum {
            steps: 1,
            input: reply.usage.input,
            cached: reply.usage.cached,
            output: reply.usage.output,
            cost: reply.cost,
            seconds: reply.seconds,
        },
        Event::Result(result) => Sum { seconds: result.seconds, ..Sum::default() },
        _ => Sum::default(),
    };
    attempt.events.iter().map(of).fold(Sum::default(), Sum::add)
}

/// The most frequent fault of the best version; where no version counts, of the last one that was evaluated; without any,
/// why it never came to that.
fn failure(attempt: &AttemptRecord) -> Option<String> {
    if attempt.is_correct() {
        return None;
    }
    let Some(judged) = attempt.best_evaluation().or(attempt.evaluations.last()) else {
        let reason = attempt.reason().map_or("unfinished", |reason| reason.name());
        return Some(format!("never evaluated ({reason})"));
    };
    let worst = judged.failures.iter().max_by_key(|(_, count)| **count);
    worst.map(|(kind, _)| kind.name().to_string())
}

fn count<'a>(
    attempts: impl IntoIterator<Item = &'a AttemptRecord>,
    name: impl Fn(&AttemptRecord) -> Option<String>,
) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for name in attempts.into_iter().filter_map(name) {
        *counts.entry(name).or_insert(0) += 1;
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All choices of k of the given items.
    fn choices(items: &[f64], k: usize) -> Vec<Vec<f64>> {
        match (k, items) {
            (0, _) => vec![Vec::new()],
            (_, []) => Vec::new(),
            (_, [first, rest @ ..]) => {
                let mut with = choices(rest, k - 1);
                with.iter_mut().for_each(|choice| choice.push(*first));
                with.extend(choices(rest, k));
                with
            }
        }
    }

    #[test]
    fn estimators_are_the_mean_over_all_choices() {
        let scores = [0.1, 2.0, 0.7, 0.7, 1.4, 0.05];
        for n in 1..=scores.len() {
            for k in 1..=n {
                let drawn = choices(&scores[..n], k);
                let largest = drawn.iter().map(|c| c.iter().copied().fold(0.0, f64::max));
                let mean = largest.sum::<f64>() / drawn.len() as f64;
                assert!(
                    (best_of(scores[..n].to_vec(), k) - mean).abs() < 1e-12,
                    "best of {k} of {n}"
                );
                let right = |score: &f64| *score > 0.5;
                let solved = drawn.iter().filter(|c| c.iter().any(right)).count();
                let share = solved as f64 / drawn.len() as f64;
                let count = scores[..n].iter().filter(|s| right(s)).count();
                assert!((pass_at(n, count, k) - share).abs() < 1e-12, "pass at {k} of {n}");
            }
        }
    }
}
