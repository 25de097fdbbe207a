//! One run in numbers.

use super::{GraphName, GraphRecord, Histogram, RunRecord, score_run};
use crate::score::{Parameters, Score, ScoredGraph, Summary, by_label, sample_correctness_rate};
use crate::stats::Decision;
use crate::verdict::VerdictKind;
use serde::Serialize;
use std::collections::BTreeMap;

/// How many offenders of a kind are named.
pub const WORST: usize = 5;
/// The speed-ups fast_p is given for.
const FAST: [f64; 3] = [1.0, 1.5, 2.0];

/// fast_p: the share of graphs that are right and at least `p` times as fast as eager.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct FastShare {
    /// The factor.
    pub p: f64,
    /// Of all graphs: right, and at least `p` times as fast as eager.
    pub share: f64,
}

/// What the timings allow us to say, in numbers of graphs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Decisions {
    /// Graphs faster than eager by more than noise.
    pub faster: usize,
    /// Graphs where the difference is noise.
    pub tie: usize,
    /// Graphs slower by more than noise.
    pub slower: usize,
}

/// The score of the graphs that share something.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ScoreGroup {
    /// The task, type, source or operation.
    pub name: String,
    /// AS of the group alone.
    #[serde(rename = "as")]
    pub aggregated: f64,
    /// Its plain rates.
    pub summary: Summary,
}

/// Scores by what graphs share. A graph counts once under each of its operations.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ScoreGroups {
    /// By sample.
    pub task: Vec<ScoreGroup>,
    /// By the type of the first float input.
    pub dtype: Vec<ScoreGroup>,
    /// Empty where paths do not tell.
    pub category: Vec<ScoreGroup>,
    /// By operation; a graph counts once for each that it has.
    pub operation: Vec<ScoreGroup>,
}

/// A graph that did not come out right.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Failure {
    /// Of the graph.
    #[serde(flatten)]
    pub name: GraphName,
    /// As text, fact by fact.
    pub evidence: Vec<String>,
}

/// Graphs that failed alike.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FailureGroup {
    /// What they have in common.
    pub verdict: VerdictKind,
    /// Each with its evidence.
    pub graphs: Vec<Failure>,
}

/// Everything the report of one run says, apart from the graphs themselves.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RunReport {
    /// Over all graphs.
    #[serde(flatten)]
    pub score: Score,
    /// AS as the reference would have counted it.
    pub reference_as: Option<f64>,
    /// How many there are.
    pub tasks: usize,
    /// Share of tasks all of whose graphs are right.
    pub task_correctness_rate: f64,
    /// fast_p for some p.
    pub fast: Vec<FastShare>,
    /// How many are faster, slower or neither.
    pub decisions: Decisions,
    /// Of speed-ups.
    pub histogram: Histogram,
    /// The same score for parts of the graphs.
    pub groups: ScoreGroups,
    /// The slowest graphs that are right, slowest first.
    pub slowest: Vec<GraphName>,
    /// The graphs whose candidate is furthest beyond eager's own error, worst first.
    pub least_accurate: Vec<GraphName>,
    /// By verdict.
    pub failures: Vec<FailureGroup>,
    /// Seconds for all graphs, and of these in timed calls.
    pub seconds: f64,
    /// Under the clock, all graphs together.
    pub measured_seconds: f64,
}

impl RunReport {
    /// `None` for a run without graphs.
    pub fn of(run: &RunRecord, parameters: Parameters) -> Option<RunReport> {
        let scored = run.scored();
        let score = Score::of(&scored, parameters)?;
        let samples: Vec<Vec<ScoredGraph>> = run
            .samples()
            .values()
            .map(|graphs| graphs.iter().map(|graph| graph.scored()).collect())
            .collect();
        let seconds = |of: fn(&GraphRecord) -> f64| run.graphs.iter().map(of).sum();
        Some(RunReport {
            score,
            reference_as: score_run(run, parameters).reference.map(|score| score.aggregated),
            tasks: samples.len(),
            task_correctness_rate: sample_correctness_rate(samples.iter().map(Vec::as_slice))?,
            fast: FAST.map(|p| FastShare { p, share: Summary::fast(&scored, p) }).to_vec(),
            decisions: decisions(run),
            histogram: Histogram::of(run.graphs.iter().filter_map(GraphRecord::right_speedup)),
            groups: groups(run, parameters),
            slowest: slowest(run),
            least_accurate: least_accurate(run),
            failures: failures(run),
            seconds: seconds(|graph| graph.event.evaluation.seconds),
            measured_seconds: seconds(|graph| graph.event.evaluation.measured_seconds),
        })
    }
}

fn decisions(run: &RunRecord) -> Decisions {
    let count = |wanted: Decision| {
        let is_wanted = |graph: &&GraphRecord| graph.event.evaluation.decision == Some(wanted);
        run.graphs.iter().filter(is_wanted).count()
    };
    Decisions {
        faster: count(Decision::Faster),
        tie: count(Decision::Tie),
        slower: count(Decision::Slower),
    }
}

fn groups(run: &RunRecord, parameters: Parameters) -> ScoreGroups {
    let by = |labels: fn(&GraphRecord) -> Vec<&str>| -> Vec<ScoreGroup> {
        let graphs = run.graphs.iter().map(|graph| (graph.scored(), labels(graph)));
        let scored = by_label(graphs).into_iter().filter_map(|(name, graphs)| {
            let score = Score::of(&graphs, parameters)?;
            let (aggregated, summary) = (score.aggregated, score.summary);
            Some(ScoreGroup { name: name.to_string(), aggregated, summary })
        });
        scored.collect()
    };
    ScoreGroups {
        task: by(|graph| vec![&graph.event.sample]),
        dtype: by(|graph| {
            let dtype = &graph.event.evaluation.dtype;
            Some(dtype.as_str()).filter(|dtype| !dtype.is_empty()).into_iter().collect()
        }),
        category: by(|graph| graph.category().into_iter().collect()),
        operation: by(|graph| {
            graph.event.evaluation.operations.iter().map(String::as_str).collect()
        }),
    }
}

/// The graphs with the largest value, largest first; names decide between equals.
fn worst(run: &RunRecord, value: impl Fn(&GraphRecord) -> Option<f64>) -> Vec<GraphName> {
    let mut found: Vec<(f64, GraphName)> =
        run.graphs.iter().filter_map(|graph| Some((value(graph)?, graph.name()))).collect();
    found.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
    found.into_iter().take(WORST).map(|(_, name)| name).collect()
}

fn slowest(run: &RunRecord) -> Vec<GraphName> {
    worst(run, |graph| graph.right_speedup().map(|speedup| -speedup))
}

/// By how many times eager's own distance from the float64 result (at least one tolerance) the candidate is off.
fn least_accurate(run: &RunRecord) -> Vec<GraphName> {
    worst(run, |graph| {
        let accuracy = graph.event.evaluation.accuracy?;
        Some(accuracy.candidate / accuracy.eager.max(1.0)).filter(|times| *times > 1.0)
    })
}

fn failures(run: &RunRecord) -> Vec<FailureGroup> {
    let mut groups: BTreeMap<VerdictKind, Vec<Failure>> = BTreeMap::new();
    for graph in &run.graphs {
        let verdict = &graph.event.evaluation.judged.verdict;
        if verdict.kind != VerdictKind::Correct {
            let evidence = verdict.evidence.iter().map(ToString::to_string).collect();
            groups.entry(verdict.kind).or_default().push(Failure { name: graph.name(), evidence });
        }
    }
    groups.into_iter().map(|(verdict, graphs)| FailureGroup { verdict, graphs }).collect()
}
