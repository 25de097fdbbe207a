//! Any number of runs task by task, each held against the first: where they differ by more than noise comes first.

use super::{Change, Comparison, GraphName, GraphRecord, Overall, RunRecord, compare};
use crate::score::{Parameters, geometric_mean};
use crate::stats::Decision;
use crate::verdict::VerdictKind;
use serde::Serialize;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// How a graph of a run differs from the same graph of the first run, by more than noise.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum GraphDifference {
    /// Than the first run, by more than noise.
    Faster,
    /// Than the first run, by more than noise.
    Slower,
    /// Right, and not so in the first run.
    Mended,
    /// Not right, and so in the first run.
    Broken,
    /// Neither is right, for other reasons.
    OtherVerdict,
}

impl GraphDifference {
    /// In words, as pages print it.
    pub const fn text(self) -> &'static str {
        match self {
            GraphDifference::Faster => "faster than in the first run",
            GraphDifference::Slower => "slower than in the first run",
            GraphDifference::Mended => "right, not so in the first run",
            GraphDifference::Broken => "not right, so in the first run",
            GraphDifference::OtherVerdict => "another verdict than in the first run",
        }
    }
}

/// One graph of one run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MatrixGraph {
    /// Its folder's name.
    pub graph: String,
    /// In this run.
    pub verdict: VerdictKind,
    /// Whether it is faster than eager.
    pub decision: Option<Decision>,
    /// Over eager.
    pub speedup: Option<f64>,
    /// From the first run.
    pub difference: Option<GraphDifference>,
}

/// One task of one run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MatrixCell {
    /// Graphs that are correct.
    pub right: usize,
    /// Geometric mean of the speed-ups of the graphs that are right.
    pub geometric_mean: Option<f64>,
    /// Graphs that are better than in the first run (faster, or right at last), and worse.
    pub better: usize,
    /// Graphs that are slower than in the first run, or not right any more.
    pub worse: usize,
    /// Those of the task that this run has.
    pub graphs: Vec<MatrixGraph>,
}

/// One task; a run that does not have it has no cell.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MatrixTask {
    /// Its sample's name.
    pub task: String,
    /// Graphs that differ from the first run, over all runs.
    pub differences: usize,
    /// One for each run, in their order; `None` where it has no graph of the task.
    pub cells: Vec<Option<MatrixCell>>,
}

/// One run as a whole.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MatrixRun {
    /// Its name.
    pub run: String,
    /// AS over all of its graphs.
    #[serde(rename = "as")]
    pub aggregated: Option<f64>,
    /// Whether its conditions separate it from the first: only verdicts are held against each other then.
    pub unlike: bool,
    /// How AS changed from the first run to this one; none for the first.
    pub score: Option<Overall>,
}

/// Runs side by side.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Matrix {
    /// The first is the one that the others are held against.
    pub runs: Vec<MatrixRun>,
    /// The most differences first, then by name.
    pub tasks: Vec<MatrixTask>,
}

/// Holds runs against the first of them.
pub fn matrix(runs: &[RunRecord], parameters: Parameters) -> Matrix {
    let Some(first) = runs.first() else { return Matrix { runs: Vec::new(), tasks: Vec::new() } };
    let mut tasks: BTreeMap<&str, Vec<Option<MatrixCell>>> = BTreeMap::new();
    let mut heads = Vec::new();
    for (index, run) in runs.iter().enumerate() {
        let found = compare(first, run, parameters);
        let differences = differences(&found);
        for (task, graphs) in run.samples() {
            let cells = tasks.entry(task).or_insert_with(|| vec![None; runs.len()]);
            cells[index] = Some(cell(&graphs, &differences));
        }
        heads.push(MatrixRun {
            run: run.name.clone(),
            aggregated: found.after.aggregated,
            unlike: found.unlike,
            score: found.score.filter(|_| index > 0),
        });
    }
    let of_task = |(task, cells): (&str, Vec<Option<MatrixCell>>)| {
        let graphs = cells.iter().flatten().flat_map(|cell| &cell.graphs);
        let differences = graphs.filter(|graph| graph.difference.is_some()).count();
        MatrixTask { task: task.to_string(), differences, cells }
    };
    let mut tasks: Vec<MatrixTask> = tasks.into_iter().map(of_task).collect();
    // Names are in order already, and the order of equals is kept.
    tasks.sort_by_key(|task| Reverse(task.differences));
    Matrix { runs: heads, tasks }
}

fn differences(found: &Comparison) -> BTreeMap<&GraphName, GraphDifference> {
    let speed = found.pairs.iter().filter_map(|pair| match pair.change {
        Change::Faster => Some((&pair.name, GraphDifference::Faster)),
        Change::Slower => Some((&pair.name, GraphDifference::Slower)),
        Change::Same => None,
    });
    let verdicts = found.verdicts.iter().map(|change| {
        let is_right = |kind: VerdictKind| kind == VerdictKind::Correct;
        let difference = match (is_right(change.before), is_right(change.after)) {
            (false, true) => GraphDifference::Mended,
            (true, false) => GraphDifference::Broken,
            _ => GraphDifference::OtherVerdict,
        };
        (&change.name, difference)
    });
    speed.chain(verdicts).collect()
}

fn cell(
    graphs: &[&GraphRecord],
    differences: &BTreeMap<&GraphName, GraphDifference>,
) -> MatrixCell {
    let graphs: Vec<MatrixGraph> = graphs
        .iter()
        .map(|record| {
            let evaluation = &record.event.evaluation;
            MatrixGraph {
                graph: evaluation.judged.graph.clone(),
                verdict: evaluation.judged.verdict.kind,
                decision: evaluation.decision,
                speedup: record.right_speedup(),
                difference: differences.get(&record.name()).copied(),
            }
        })
        .collect();
    let count = |wanted: [GraphDifference; 2]| {
        let found = graphs.iter().filter_map(|graph| graph.difference);
        found.filter(|difference| wanted.contains(difference)).count()
    };
    let speedups: Vec<f64> = graphs.iter().filter_map(|graph| graph.speedup).collect();
    MatrixCell {
        right: speedups.len(),
        geometric_mean: geometric_mean(speedups.iter().copied()),
        better: count([GraphDifference::Faster, GraphDifference::Mended]),
        worse: count([GraphDifference::Slower, GraphDifference::Broken]),
        graphs,
    }
}
