//! Several runs, best first, like beside like.

use super::compare::overall;
use super::ranks::{is_told, ranks};
use super::{Conditions, GraphName, GraphRecord, RunRecord};
use super::{are_unlike, differences, sentence};
use crate::score::{Parameters, Score, ScoredGraph, graph_log_score, sample_correctness_rate};
use crate::stats::RatioInterval;
use passnet_graph::FileName;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;

/// Runs that may be ranked side by side.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RankedGroup {
    /// Of the first run of the group; the others differ in nothing that separates.
    pub conditions: Vec<Conditions>,
    /// In what the group differs from the first one.
    pub differences: Vec<String>,
    /// Graphs that all runs of the group have.
    pub graphs: usize,
    /// Best first.
    pub standings: Vec<Standing>,
}

/// A run among others. The numbers are over the graphs that all runs of its group have, so that they can be compared.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Standing {
    /// Its name.
    pub run: String,
    /// From 1; runs that cannot be told from the best of a rank share it.
    pub rank: usize,
    /// Over the graphs that all runs have.
    #[serde(flatten)]
    pub score: Score,
    /// Where AS lies with 99 % confidence, had other tasks of the same kind been drawn.
    pub interval: RatioInterval,
    /// Share of tasks all of whose graphs are right.
    pub task_correctness_rate: f64,
    /// Graphs of this run that other runs of its group do not have.
    pub left_out: usize,
    /// Graphs among the counted ones that ran in the compatibility tier: they count as failed.
    pub compat: usize,
}

/// The same graph under the same name.
type Key = (GraphName, Option<String>);

fn key(graph: &GraphRecord) -> Key {
    (graph.name(), graph.artefact(FileName::Model.as_str()).map(String::from))
}

/// The runs in groups of like conditions, in the order in which they are first met; in a group by AS, best first, equal
/// ones in the order given. A group without a graph that is in all its runs has no standings.
pub fn leaderboard(runs: &[RunRecord], parameters: Parameters) -> Vec<RankedGroup> {
    let mut groups: Vec<Vec<&RunRecord>> = Vec::new();
    for run in runs {
        let is_like = |group: &&mut Vec<&RunRecord>| !are_unlike(&differences(group[0], run));
        match groups.iter_mut().find(is_like) {
            Some(group) => group.push(run),
            None => groups.push(vec![run]),
        }
    }
    let ranked = groups.iter().map(|group| {
        let apart = differences(groups[0][0], group[0]);
        let apart = if std::ptr::eq(groups[0][0], group[0]) { Vec::new() } else { apart };
        rank(group, apart.iter().map(sentence).collect(), parameters)
    });
    ranked.collect()
}

/// What a run has of the counted graphs.
struct Counted {
    standing: Standing,
    /// What each graph adds to AS.
    logs: BTreeMap<Key, f64>,
}

fn rank(runs: &[&RunRecord], differences: Vec<String>, parameters: Parameters) -> RankedGroup {
    let names = |run: &&RunRecord| run.graphs.iter().map(key).collect::<BTreeSet<_>>();
    let common = runs.iter().map(names).reduce(|a, b| a.intersection(&b).cloned().collect());
    let common = common.unwrap_or_default();
    let mut counted: Vec<Counted> =
        runs.iter().filter_map(|run| count(run, &common, parameters)).collect();
    counted.sort_by(|a, b| b.standing.score.aggregated.total_cmp(&a.standing.score.aggregated));
    let Ok(ranks) = ranks(counted.iter().map(Ok::<_, Infallible>), |one, two| are_told(one, two));
    for (counted, rank) in counted.iter_mut().zip(ranks) {
        counted.standing.rank = rank;
    }
    RankedGroup {
        conditions: runs[0].conditions().into_iter().cloned().collect(),
        differences,
        graphs: common.len(),
        standings: counted.into_iter().map(|counted| counted.standing).collect(),
    }
}

fn count(run: &RunRecord, common: &BTreeSet<Key>, parameters: Parameters) -> Option<Counted> {
    let mut samples: Vec<Vec<ScoredGraph>> = Vec::new();
    let mut logs = BTreeMap::new();
    let mut compat = 0;
    for graphs in run.samples().into_values() {
        let counted = graphs.into_iter().filter(|graph| common.contains(&key(graph)));
        let score = |graph: &GraphRecord| {
            compat += usize::from(!graph.event.evaluation.tier.is_plan());
            let scored = graph.scored();
            logs.insert(key(graph), graph_log_score(&scored, parameters));
            scored
        };
        samples.push(counted.map(score).collect());
    }
    samples.retain(|graphs| !graphs.is_empty());
    let scored = samples.concat();
    let score = Score::of(&scored, parameters)?;
    let of_tasks = logs.iter().map(|((name, _), log)| (name.sample.as_str(), *log));
    let interval = overall(of_tasks).map(|found| found.ratio).unwrap_or(RatioInterval {
        low: score.aggregated,
        ratio: score.aggregated,
        high: score.aggregated,
    });
    let standing = Standing {
        run: run.name.clone(),
        rank: 0,
        interval,
        task_correctness_rate: sample_correctness_rate(samples.iter().map(Vec::as_slice))?,
        left_out: run.graphs.len() - scored.len(),
        compat,
        score,
    };
    Some(Counted { standing, logs })
}

/// Whether the tasks show that two runs differ, graph by graph.
fn are_told(one: &Counted, two: &Counted) -> bool {
    is_told(
        one.logs
            .iter()
            .filter_map(|(key, log)| Some((key.0.sample.as_str(), log - two.logs.get(key)?))),
    )
}
