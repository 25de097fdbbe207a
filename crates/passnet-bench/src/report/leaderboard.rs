//! Several runs, best first.

use super::{GraphName, GraphRecord, RunRecord};
use crate::score::{Outcome, Parameters, Score, sample_correctness_rate};
use passnet_graph::FileName;
use serde::Serialize;
use std::collections::BTreeSet;

/// A run among others. The numbers are over the graphs that all runs have, so that they can be compared.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Standing {
    pub run: String,
    #[serde(flatten)]
    pub score: Score,
    /// Share of tasks all of whose graphs are right.
    pub task_correctness_rate: f64,
    /// Graphs of this run that other runs do not have.
    pub left_out: usize,
    /// Graphs among the counted ones that ran in the compatibility tier: they count as failed.
    pub compat: usize,
}

/// The same graph under the same name.
fn key(graph: &GraphRecord) -> (GraphName, Option<String>) {
    (graph.name(), graph.artefact(FileName::Model.as_str()).map(String::from))
}

/// The runs by AS, best first; equal ones in the order given. Empty if no graph is in all runs.
pub fn leaderboard(runs: &[RunRecord], parameters: Parameters) -> Vec<Standing> {
    let names = |run: &RunRecord| run.graphs.iter().map(key).collect::<BTreeSet<_>>();
    let common = runs.iter().map(names).reduce(|a, b| a.intersection(&b).cloned().collect());
    let common = common.unwrap_or_default();
    let standing = |run: &RunRecord| {
        let mut samples: Vec<Vec<Outcome>> = Vec::new();
        let mut compat = 0;
        for graphs in run.samples().into_values() {
            let counted = graphs.into_iter().filter(|graph| common.contains(&key(graph)));
            let outcome = |graph: &GraphRecord| {
                compat += usize::from(!graph.event.evaluation.tier.is_plan());
                graph.outcome()
            };
            samples.push(counted.map(outcome).collect());
        }
        samples.retain(|outcomes| !outcomes.is_empty());
        let outcomes = samples.concat();
        Some(Standing {
            run: run.name.clone(),
            score: Score::of(&outcomes, parameters)?,
            task_correctness_rate: sample_correctness_rate(samples.iter().map(Vec::as_slice))?,
            left_out: run.graphs.len() - outcomes.len(),
            compat,
        })
    };
    let mut standings: Vec<Standing> = runs.iter().filter_map(standing).collect();
    standings.sort_by(|a, b| b.score.aggregated.total_cmp(&a.score.aggregated));
    standings
}
