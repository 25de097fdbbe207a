//! Two runs over the same graphs: what changed, and is it more than noise?
//!
//! A single graph got faster when the intervals of its two speed-ups are further apart than both machines' noise.
//! The whole is judged by the mean of the paired logarithms, drawn again task by task, because the graphs of a task
//! share one pass and are no independent findings.

use super::{GraphName, GraphRecord, RunRecord, are_unlike, differences, sentence};
use crate::score::{Parameters, Score, ScoredGraph, graph_log_score};
use crate::stats::{Bootstrap, RatioInterval, sign_test};
use crate::verdict::VerdictKind;
use passnet_engine::identity::Difference;
use passnet_graph::FileName;
use serde::Serialize;
use std::collections::BTreeMap;

/// Two runs of one thing may differ by this much; a smaller change of the whole is none, however certain.
const LEAST_CHANGE: f64 = 0.01;
/// With fewer independent pairs nothing is concluded about the whole.
const LEAST_UNITS: usize = 6;

/// What became of the speed-up of a graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Change {
    /// By more than the noise of both runs.
    Slower,
    /// By more than the noise of both runs.
    Faster,
    /// Nothing that can be told from noise.
    Same,
}

/// A graph that is right in both runs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Pair {
    /// The graph in both runs.
    #[serde(flatten)]
    pub name: GraphName,
    /// Its speed-up in the first run.
    pub before: f64,
    /// Its speed-up in the second.
    pub after: f64,
    /// `after / before`, between the nearest and the furthest ends of the two intervals.
    pub ratio: RatioInterval,
    /// Whether the difference is more than noise.
    pub change: Change,
}

/// A graph with another verdict than before.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct VerdictChange {
    /// The graph in both runs.
    #[serde(flatten)]
    pub name: GraphName,
    /// Its verdict in the first run.
    pub before: VerdictKind,
    /// Its verdict in the second.
    pub after: VerdictKind,
    /// Of the later verdict, or of the earlier one where the later is right.
    pub evidence: Vec<String>,
}

/// What can be said about all pairs together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Conclusion {
    /// The interval lies above 1 by more than one percent.
    Better,
    /// The interval lies below 1 by more than one percent.
    Worse,
    /// The interval holds 1, or comes within one percent of it.
    NoDifference,
    /// Too few independent pairs for an answer.
    TooFew,
}

impl Conclusion {
    /// In words, as reports print it.
    pub const fn text(self) -> &'static str {
        match self {
            Conclusion::Better => "better",
            Conclusion::Worse => "worse",
            Conclusion::NoDifference => "no difference that can be told",
            Conclusion::TooFew => "too few pairs to tell",
        }
    }
}

/// A ratio over all pairs.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Overall {
    /// Geometric mean of `after / before` with its 99 % interval.
    pub ratio: RatioInterval,
    /// Graphs in pairs.
    pub graphs: usize,
    /// Tasks, or graphs where there are fewer than six tasks: what was drawn again.
    pub units: usize,
    /// Whether `units` are tasks.
    pub units_are_tasks: bool,
    /// Units that went up, and down.
    pub better: usize,
    /// Units that went down.
    pub worse: usize,
    /// Of a sign test over the units.
    pub p_value: f64,
    /// What may be said of the second run.
    pub conclusion: Conclusion,
}

/// One of the two runs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SideScore {
    /// Its name.
    pub run: String,
    /// All of its graphs, not only the common ones.
    pub graphs: usize,
    /// AS over all its graphs.
    #[serde(rename = "as")]
    pub aggregated: Option<f64>,
    /// Over the graphs that both runs have.
    pub common: Option<Score>,
}

/// Everything that differs between two runs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Comparison {
    /// The first run.
    pub before: SideScore,
    /// The second run.
    pub after: SideScore,
    /// In what the conditions of the two differ.
    pub differences: Vec<Difference>,
    /// Whether they differ so much that no speed is held against another: another device, other versions, another depth
    /// of checking. Only verdicts are compared then.
    pub unlike: bool,
    /// What makes the two hard to compare, in words.
    pub cautions: Vec<String>,
    /// How AS changed over the common graphs, failures included.
    pub score: Option<Overall>,
    /// How the speed-up changed where both are right.
    pub speed: Option<Overall>,
    /// Slower first, then faster, then the rest; the largest change first.
    pub pairs: Vec<Pair>,
    /// Common graphs whose verdict changed.
    pub verdicts: Vec<VerdictChange>,
    /// Graphs that the second run lacks.
    pub only_before: Vec<GraphName>,
    /// Graphs that the first run lacks.
    pub only_after: Vec<GraphName>,
    /// Same name, other model text: not compared.
    pub other_models: Vec<GraphName>,
}

/// Compares two runs graph by graph.
pub fn compare(before: &RunRecord, after: &RunRecord, parameters: Parameters) -> Comparison {
    let index = |run: &'_ RunRecord| -> BTreeMap<GraphName, usize> {
        run.graphs.iter().enumerate().map(|(i, graph)| (graph.name(), i)).collect()
    };
    let (old_index, new_index) = (index(before), index(after));
    let only = |mine: &BTreeMap<GraphName, usize>, other: &BTreeMap<GraphName, usize>| {
        mine.keys().filter(|name| !other.contains_key(name)).cloned().collect::<Vec<_>>()
    };
    let (only_before, only_after) = (only(&old_index, &new_index), only(&new_index, &old_index));
    let mut other_models = Vec::new();
    let mut common: Vec<(GraphName, &GraphRecord, &GraphRecord)> = Vec::new();
    for (name, &old) in &old_index {
        let Some(&new) = new_index.get(name) else { continue };
        let (old, new) = (&before.graphs[old], &after.graphs[new]);
        match is_same_model(old, new) {
            true => common.push((name.clone(), old, new)),
            false => other_models.push(name.clone()),
        }
    }
    let differences = differences(before, after);
    let unlike = are_unlike(&differences);
    let like = if unlike { &[][..] } else { &common[..] };
    let mut pairs: Vec<Pair> =
        like.iter().filter_map(|(name, old, new)| pair(name, old, new)).collect();
    pairs.sort_by(|a, b| {
        let size = |pair: &Pair| pair.ratio.ratio.ln().abs();
        a.change
            .cmp(&b.change)
            .then_with(|| size(b).total_cmp(&size(a)))
            .then_with(|| a.name.cmp(&b.name))
    });
    let speed = overall(like.iter().filter_map(|(name, old, new)| {
        Some((name.sample.as_str(), (new.right_speedup()? / old.right_speedup()?).ln()))
    }));
    let score = overall(like.iter().map(|(name, old, new)| {
        let log = |graph: &GraphRecord| graph_log_score(&graph.scored(), parameters);
        (name.sample.as_str(), log(new) - log(old))
    }));
    let side = |run: &RunRecord, scored: Vec<ScoredGraph>| SideScore {
        run: run.name.clone(),
        graphs: run.graphs.len(),
        aggregated: Score::of(&run.scored(), parameters).map(|score| score.aggregated),
        common: Score::of(&scored, parameters),
    };
    Comparison {
        before: side(before, common.iter().map(|(_, old, _)| old.scored()).collect()),
        after: side(after, common.iter().map(|(_, _, new)| new.scored()).collect()),
        cautions: cautions(before, after, &differences),
        differences,
        unlike,
        score,
        speed,
        pairs,
        verdicts: common.iter().filter_map(|(name, old, new)| verdict(name, old, new)).collect(),
        only_before,
        only_after,
        other_models,
    }
}

/// Where both kept the model's text it must be the same; where one did not, the name must do.
fn is_same_model(old: &GraphRecord, new: &GraphRecord) -> bool {
    let model = FileName::Model.as_str();
    match (old.artefact(model), new.artefact(model)) {
        (Some(old), Some(new)) => old == new,
        _ => true,
    }
}

/// `None` unless both are right and have a sound interval.
fn pair(name: &GraphName, old: &GraphRecord, new: &GraphRecord) -> Option<Pair> {
    let (before, after) = (old.right_speedup()?, new.right_speedup()?);
    let (old_interval, new_interval) = (interval(old)?, interval(new)?);
    let ratio = RatioInterval {
        low: new_interval.low / old_interval.high,
        ratio: after / before,
        high: new_interval.high / old_interval.low,
    };
    let noise = (1.0 + old.noise_floor) * (1.0 + new.noise_floor);
    let change = if ratio.low > noise {
        Change::Faster
    } else if ratio.high * noise < 1.0 {
        Change::Slower
    } else {
        Change::Same
    };
    Some(Pair { name: name.clone(), before, after, ratio, change })
}

/// Stored numbers may be anything.
fn interval(graph: &GraphRecord) -> Option<RatioInterval> {
    let is_sound = |found: &RatioInterval| {
        found.low > 0.0 && found.low <= found.high && found.high.is_finite()
    };
    graph.event.evaluation.interval.filter(is_sound)
}

fn verdict(name: &GraphName, old: &GraphRecord, new: &GraphRecord) -> Option<VerdictChange> {
    let (before, after) =
        (&old.event.evaluation.judged.verdict, &new.event.evaluation.judged.verdict);
    if before.kind == after.kind {
        return None;
    }
    let told = if after.kind == VerdictKind::Correct { before } else { after };
    Some(VerdictChange {
        name: name.clone(),
        before: before.kind,
        after: after.kind,
        evidence: told.evidence.iter().map(ToString::to_string).collect(),
    })
}

/// Judges logarithms of ratios, given with their task.
pub fn overall<'a>(logs: impl Iterator<Item = (&'a str, f64)>) -> Option<Overall> {
    let mut tasks: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    for (task, log) in logs.filter(|(_, log)| log.is_finite()) {
        tasks.entry(task).or_default().push(log);
    }
    let graphs = tasks.values().map(Vec::len).sum();
    let units_are_tasks = tasks.len() >= LEAST_UNITS;
    let units: Vec<Vec<f64>> = match units_are_tasks {
        true => tasks.into_values().collect(),
        false => tasks.into_values().flatten().map(|log| vec![log]).collect(),
    };
    let found = Bootstrap::default().mean_of_groups(&units)?;
    let sums: Vec<f64> = units.iter().map(|unit| unit.iter().sum()).collect();
    let better = sums.iter().filter(|sum| **sum > 0.0).count();
    let worse = sums.iter().filter(|sum| **sum < 0.0).count();
    let conclusion = if units.len() < LEAST_UNITS {
        Conclusion::TooFew
    } else if found.low > LEAST_CHANGE.ln_1p() {
        Conclusion::Better
    } else if found.high < -LEAST_CHANGE.ln_1p() {
        Conclusion::Worse
    } else {
        Conclusion::NoDifference
    };
    let ratio =
        RatioInterval { low: found.low.exp(), ratio: found.mean.exp(), high: found.high.exp() };
    Some(Overall {
        ratio,
        graphs,
        units: units.len(),
        units_are_tasks,
        better,
        worse,
        p_value: sign_test(better, worse),
        conclusion,
    })
}

fn cautions(before: &RunRecord, after: &RunRecord, differences: &[Difference]) -> Vec<String> {
    let mut cautions = Vec::new();
    for run in [before, after] {
        if !run.is_complete {
            cautions.push(format!("{} was stopped before its end", run.name));
        }
    }
    cautions.extend(differences.iter().map(sentence));
    cautions
}
