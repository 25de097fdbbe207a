//! The results of an evaluation, for people and for machines.

use super::against::Against;
use super::next;
use crate::commands::curve::print_curve;
use crate::error::CommandError;
use crate::output::{Output, table};
use passnet_bench::bench::{Judged, NotJudged};
use passnet_bench::evaluate::{CallCosts, Evaluation, Overhead};
use passnet_bench::report::{GraphRow, printable};
use passnet_bench::run::GraphEvent;
use passnet_bench::score::{Parameters, Score, ScoredGraph, Scoring, geometric_mean};
use passnet_bench::stats::{Decision, median};
use passnet_bench::stop;
use passnet_bench::tolerance::BASELINE;
use passnet_bench::verdict::VerdictKind;
use passnet_cluster::Status;
use passnet_engine::Identity;
use serde_json::json;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

pub(super) struct Shown<'a> {
    pub(super) run: Option<&'a Path>,
    pub(super) identity: &'a Identity,
    pub(super) noise_floor: f64,
    pub(super) parameters: Parameters,
    pub(super) judged: &'a Judged,
    pub(super) against: &'a [Against],
    /// How it was spread over nodes, where it was.
    pub(super) cluster: Option<&'a Status>,
}

impl Shown<'_> {
    pub(super) fn score(&self) -> Option<Score> {
        let scored: Vec<ScoredGraph> = self
            .judged
            .events
            .iter()
            .map(|event| event.evaluation.judged.scored(Scoring::Strict))
            .collect();
        Score::of(&scored, self.parameters)
    }

    /// One object: the documented keys first, then what else is known.
    pub(super) fn json(&self, out: &mut Output) -> Result<(), CommandError> {
        let score = self.score();
        let graphs: Vec<GraphRow<'_>> = self.judged.events.iter().map(GraphRow::of).collect();
        out.json(&json!({
            "run": self.run.map(|run| run.display().to_string()),
            "identity": self.identity,
            "as": score.as_ref().map(|score| score.aggregated),
            "es": score.as_ref().map(|score| score.es),
            "summary": score.as_ref().map(|score| score.summary),
            "noise_floor": self.noise_floor,
            "graphs": graphs,
            "not_judged": self.judged.not_judged,
            "against": self.against,
            "cluster": self.cluster,
        }))
    }

    pub(super) fn print(&self, out: &mut Output) -> Result<(), CommandError> {
        out.line(printable(&self.identity.describe()))?;
        out.line("")?;
        self.print_samples(out)?;
        self.print_failures(out)?;
        self.print_not_judged(out)?;
        let Some(score) = self.score() else { return out.line("no graphs") };
        out.line("")?;
        print_curve(&score.es, out)?;
        let summary = &score.summary;
        out.line("")?;
        let compat = self.judged.events.iter().filter(|e| !e.evaluation.tier.is_plan());
        let right = compat.clone().filter(|e| is_right(e)).count();
        let compat = compat.count();
        if compat > 0 {
            out.line(format!(
                "compatibility tier: {compat} graphs ran in a sandboxed PyTorch, {right} of them right; not timed, \
                 not scored"
            ))?;
        }
        out.line(format!(
            "AS        {:.4}   speed-up over eager, averaged over graphs and levels t: 1 is as fast as eager, a \
             level at which a graph fails counts {}",
            score.aggregated, self.parameters.b
        ))?;
        out.line(format!(
            "correct   {} of {} graphs at t = {BASELINE}   t: how far outputs may differ from eager's, from -10 \
             (hardly) to 5 (widely)",
            summary.correct, summary.graphs
        ))?;
        if let Some(mean) = summary.geometric_mean {
            out.line(format!("speed-up  {mean:.3} (geometric mean of the correct graphs)"))?;
        }
        let count = |wanted: Decision| {
            self.judged.events.iter().filter(|e| e.evaluation.decision == Some(wanted)).count()
        };
        out.line(format!(
            "faster {}, tie {}, slower {} (noise floor of this machine {:.1} %)",
            count(Decision::Faster),
            count(Decision::Tie),
            count(Decision::Slower),
            self.noise_floor * 100.0
        ))?;
        let all: Vec<&GraphEvent> = self.judged.events.iter().collect();
        if let Some(reached) = roofline(&all) {
            out.line(format!(
                "roofline  {} reached: the least time its device could take, as a share of what the candidate took \
                 (geometric mean)",
                share(Some(reached))
            ))?;
        }
        self.print_costs(out)?;
        self.print_against(out)?;
        let measured: f64 = self.judged.events.iter().map(|e| e.evaluation.measured_seconds).sum();
        let seconds: f64 = self.judged.events.iter().map(|e| e.evaluation.seconds).sum();
        out.line(format!(
            "{:.1} s for {} graphs, {:.1} s of them in timed calls",
            seconds,
            self.judged.events.len(),
            measured
        ))?;
        let overhead: Overhead = self.judged.events.iter().map(|e| e.evaluation.overhead).sum();
        let stages = overhead.stages().map(|(stage, seconds)| format!("{stage} {seconds:.1}"));
        let share = overhead.total() / measured * 100.0;
        let share =
            if share.is_finite() { format!(" ({share:.1} % of calls)") } else { String::new() };
        let total = overhead.total();
        out.line(format!("the harness itself: {total:.1} s{share}: {}", stages.join(", ")))
    }

    /// The results beside those of other compilers.
    fn print_against(&self, out: &mut Output) -> Result<(), CommandError> {
        if self.against.is_empty() {
            return Ok(());
        }
        let number = |value: Option<f64>| value.map_or("-".into(), |value| format!("{value:.3}"));
        let mut rows =
            table(["against", "graphs", "correct", "AS", "speed-up", "times as fast", "faster on"]);
        for against in self.against {
            rows.add_row([
                against.compiler.to_string(),
                format!("{} ({} kept before)", against.graphs, against.kept),
                against.correct.to_string(),
                number(against.aggregated),
                number(against.speedup),
                number(against.ratio),
                format!("{} of {}", against.faster, against.both),
            ]);
        }
        out.table(&rows)?;
        out.line("times as fast: what is under test over that compiler, where both are right (geometric mean)")
    }

    /// What a call costs the host and the device, where the engine could tell.
    fn print_costs(&self, out: &mut Output) -> Result<(), CommandError> {
        if self.judged.events.iter().all(|e| e.evaluation.candidate_costs.host_ms.is_none()) {
            return Ok(());
        }
        let mean = |of: &dyn Fn(&Evaluation) -> Option<f64>| {
            let known = self.judged.events.iter().filter_map(|e| of(&e.evaluation));
            geometric_mean(known).map_or("-".into(), |ms| format!("{:.1}", ms * 1e3))
        };
        let mut side = |name: &str, costs: &dyn Fn(&Evaluation) -> CallCosts| {
            out.line(format!(
                "one call  {name:9}  host {} µs, device {} µs, device with a cold cache {} µs (geometric means)",
                mean(&|e| costs(e).host_ms),
                mean(&|e| costs(e).device_ms),
                mean(&|e| costs(e).cold_ms)
            ))
        };
        side("eager", &|e| e.eager_costs)?;
        side("candidate", &|e| e.candidate_costs)
    }

    /// One row per sample: a person looks at tasks first.
    fn print_samples(&self, out: &mut Output) -> Result<(), CommandError> {
        let mut rows = table([
            "task",
            "graphs",
            "correct",
            "AS",
            "speed-up",
            "slowest",
            "fastest",
            "eager",
            "candidate",
            "roofline",
        ]);
        for (name, events) in self.tasks() {
            let judged: Vec<_> = events.iter().map(|event| &event.evaluation.judged).collect();
            let scored: Vec<ScoredGraph> =
                judged.iter().map(|judged| judged.scored(Scoring::Strict)).collect();
            let right = judged.iter().filter(|j| j.verdict.kind == VerdictKind::Correct);
            let speedups: Vec<f64> = right.filter_map(|judged| judged.speedup).collect();
            let score = Score::of(&scored, self.parameters);
            let number = |value: Option<f64>| value.map_or("-".into(), |v| format!("{v:.2}"));
            rows.add_row([
                name.to_string(),
                events.len().to_string(),
                speedups.len().to_string(),
                number(score.map(|score| score.aggregated)),
                number(geometric_mean(speedups.iter().copied())),
                number(speedups.iter().copied().reduce(f64::min)),
                number(speedups.iter().copied().reduce(f64::max)),
                time_of(&events, |evaluation| &evaluation.eager_ms),
                time_of(&events, |evaluation| &evaluation.candidate_ms),
                share(roofline(&events)),
            ]);
        }
        out.table(&rows)?;
        out.line(
            "eager, candidate: one call (geometric mean over the correct graphs of the median)",
        )
    }

    /// The results of each task that something is known of, by name.
    pub(super) fn tasks(&self) -> BTreeMap<&str, Vec<&GraphEvent>> {
        let mut tasks: BTreeMap<&str, Vec<&GraphEvent>> = BTreeMap::new();
        for lost in &self.judged.not_judged {
            tasks.entry(&lost.sample).or_default();
        }
        for event in &self.judged.events {
            tasks.entry(&event.sample).or_default().push(event);
        }
        tasks
    }

    /// What was written, what was missed, what can be done next.
    pub(super) fn print_end(
        &self,
        written: &[PathBuf],
        missed: Option<(f64, f64)>,
        out: &mut Output,
    ) -> Result<(), CommandError> {
        out.line("")?;
        if let Some((reached, least)) = missed {
            out.line(format!("AS {reached:.4} is below the {least} asked for"))?;
        }
        if let Some(run) = self.run {
            let events = run.join("events.jsonl");
            out.line(format!("wrote {} (every result, sealed)", events.display()))?;
        }
        for path in written {
            out.line(format!("wrote {}", path.display()))?;
        }
        for (command, purpose) in next::steps(self.judged, self.run) {
            out.line(printable(&format!("next: {command}   {purpose}")))?;
        }
        Ok(())
    }

    fn print_not_judged(&self, out: &mut Output) -> Result<(), CommandError> {
        let lost = &self.judged.not_judged;
        if lost.is_empty() {
            return Ok(());
        }
        out.line("")?;
        let (stopped, lost): (Vec<&NotJudged>, Vec<&NotJudged>) =
            lost.iter().partition(|lost| lost.reason == stop::REASON);
        if !stopped.is_empty() {
            out.line(format!(
                "stopped: {} graphs were not begun; the same command with `--out` goes on with them",
                stopped.len()
            ))?;
        }
        if lost.is_empty() {
            return Ok(());
        }
        for NotJudged { sample, graph, reason } in &lost {
            out.line(printable(&format!("{sample}/{graph}: not judged: {reason}")))?;
        }
        out.line(format!(
            "{} of {} graphs not judged: the machine failed, not the pass; they do not count, and the same command \
             takes them up again",
            lost.len(),
            lost.len() + self.judged.events.len()
        ))
    }

    fn print_failures(&self, out: &mut Output) -> Result<(), CommandError> {
        let failures: Vec<&GraphEvent> =
            self.judged.events.iter().filter(|e| !is_right(e)).collect();
        if failures.is_empty() {
            return Ok(());
        }
        out.line("")?;
        for event in failures {
            let judged = &event.evaluation.judged;
            out.line(format!("{}/{}: {}", event.sample, judged.graph, judged.verdict))?;
        }
        Ok(())
    }
}

/// The median of one call, over the right graphs of a task.
fn time_of(events: &[&GraphEvent], calls: fn(&Evaluation) -> &Vec<f64>) -> String {
    let right = events.iter().filter(|event| is_right(event));
    short_time(geometric_mean(right.filter_map(|event| median(calls(&event.evaluation)))))
}

/// Milliseconds with a unit that fits.
pub(super) fn short_time(milliseconds: Option<f64>) -> String {
    match milliseconds {
        None => "-".into(),
        Some(ms) if ms < 1.0 => format!("{:.1} µs", ms * 1e3),
        Some(ms) if ms < 1e3 => format!("{ms:.2} ms"),
        Some(ms) => format!("{:.2} s", ms / 1e3),
    }
}

fn is_right(event: &GraphEvent) -> bool {
    event.evaluation.judged.verdict.kind == VerdictKind::Correct
}

/// Which share of what their device can do the right graphs reach.
fn roofline(events: &[&GraphEvent]) -> Option<f64> {
    let right = events.iter().filter(|event| is_right(event));
    geometric_mean(right.filter_map(|event| event.evaluation.roofline_share()))
}

fn share(share: Option<f64>) -> String {
    share.map_or("-".into(), |share| format!("{:.0} %", share * 100.0))
}
