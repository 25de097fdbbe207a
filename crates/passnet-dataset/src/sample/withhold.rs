//! A set of tasks that nobody may learn from: its structures, and how tasks to learn from differ from it.

use super::split::StructureDigest;
use super::tasks::{SplitSide, StoredTask, load, structures_of};
use crate::store::{Store, StoreError};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// What stands in the tasks of a set; nothing by default.
#[derive(Debug, Clone, Default)]
pub struct Withheld {
    pub(crate) structures: BTreeSet<StructureDigest>,
    /// The operations of each task.
    tasks: Vec<Vec<String>>,
}

impl Withheld {
    /// Of the tasks of a store; of one without tasks, its graphs.
    pub fn of(store: &Store) -> Result<Withheld, StoreError> {
        let by_path = structures_of(store)?;
        let tasks = load(store)?;
        let mut structures: BTreeSet<StructureDigest> = tasks
            .iter()
            .flat_map(|task| &task.graphs)
            .filter_map(|graph| by_path.get(&graph.path).copied())
            .collect();
        if tasks.is_empty() {
            structures = by_path.into_values().collect();
        }
        Ok(Withheld { structures, tasks: tasks.into_iter().map(|task| task.ops).collect() })
    }
}

/// How long the graphs of some tasks are, in operations.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Lengths {
    /// How many tasks there are.
    pub tasks: usize,
    /// The shortest.
    pub least: usize,
    /// Half of them have no more.
    pub median: usize,
    /// Nine of ten have no more.
    pub most: usize,
}

impl Lengths {
    fn of<'a>(ops: impl Iterator<Item = &'a [String]>) -> Lengths {
        let mut lengths: Vec<usize> = ops.map(<[String]>::len).collect();
        lengths.sort_unstable();
        let at = |tenths: usize| lengths.get((lengths.len().saturating_sub(1)) * tenths / 10);
        let at = |tenths: usize| at(tenths).copied().unwrap_or(0);
        Lengths { tasks: lengths.len(), least: at(0), median: at(5), most: at(9) }
    }
}

/// What is to be learned from against what is withheld.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// What is to be learned from.
    pub training: Lengths,
    /// What is withheld.
    pub withheld: Lengths,
    /// Operations of the withheld set that no training task has, with the withheld tasks that have them; most frequent first.
    pub never_learned: Vec<(String, usize)>,
}

/// How the training tasks of a store differ from a withheld set.
pub fn difference(store: &Store, withheld: &Withheld) -> Result<Difference, StoreError> {
    let tasks = load(store)?;
    let is_training = |task: &&StoredTask| task.side == Some(SplitSide::Training);
    let training: Vec<&StoredTask> = tasks.iter().filter(is_training).collect();
    let learned: BTreeSet<&String> = training.iter().flat_map(|task| &task.ops).collect();
    let mut missing: BTreeMap<&String, usize> = BTreeMap::new();
    for ops in &withheld.tasks {
        let distinct: BTreeSet<&String> = ops.iter().filter(|op| !learned.contains(op)).collect();
        distinct.into_iter().for_each(|op| *missing.entry(op).or_insert(0) += 1);
    }
    let mut never_learned: Vec<(String, usize)> =
        missing.into_iter().map(|(op, count)| (op.clone(), count)).collect();
    never_learned.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    Ok(Difference {
        training: Lengths::of(training.iter().map(|task| task.ops.as_slice())),
        withheld: Lengths::of(withheld.tasks.iter().map(Vec::as_slice)),
        never_learned,
    })
}
