//! Which side of the split each task of a store is on.

use super::buckets::PieceKind;
use super::groups::Rule;
use super::least::LeastGraphs;
use super::split::{self, StructureDigest};
use super::tasks::{SplitSide, StoredTask, load, save, structures_of};
use super::withhold::Withheld;
use crate::store::{Store, StoreError, StoreErrorKind};
use serde::Serialize;
use std::collections::BTreeMap;

/// What a split did to the tasks of one kind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SplitReport {
    /// The kind of the tasks.
    pub kind: PieceKind,
    /// Tasks for evaluation.
    pub evaluation: usize,
    /// Tasks for training.
    pub training: usize,
    /// Tasks on neither side.
    pub withheld: usize,
    /// Op transitions that occur in the tasks.
    pub transitions: usize,
    /// Those of them that evaluation tasks show.
    pub transitions_shown: usize,
}

/// Which tasks may be asked of those who are evaluated, and how many.
#[derive(Debug, Clone, Copy)]
pub struct SplitOptions {
    /// Evaluation tasks of each kind, but for single operations.
    pub evaluation: usize,
    /// Evaluation tasks of single operations: most are wanted for training.
    pub sole_op: usize,
    /// Graphs that an evaluation task has at least.
    pub least_graphs: LeastGraphs,
}

/// Splits the tasks of each kind: `count` for evaluation, the rest for training. A structure that stands in any
/// evaluation task, of whatever kind, stands in no training task; this is checked before anything is kept.
pub fn split_tasks(store: &mut Store, count: usize) -> Result<Vec<SplitReport>, StoreError> {
    let options = SplitOptions { evaluation: count, sole_op: 0, least_graphs: LeastGraphs::all(1) };
    split_tasks_without(store, options, &Withheld::default())
}

/// As [`split_tasks`], of tasks with graphs enough; no structure of the withheld set stands in a training task either.
pub fn split_tasks_without(
    store: &mut Store,
    options: SplitOptions,
    withheld: &Withheld,
) -> Result<Vec<SplitReport>, StoreError> {
    let mut tasks = load(store)?;
    if let Some(task) =
        tasks.iter().find(|task| task.rule == Rule::Published && task.side.is_some())
    {
        let message =
            format!("its tasks are split by published lists already (`{}`, for one)", task.id);
        return Err(StoreError {
            store: store.path().to_owned(),
            kind: StoreErrorKind::Refused(message),
        });
    }
    let structures = structures_of(store)?;
    let of_task: Vec<Vec<StructureDigest>> = tasks
        .iter()
        .map(|task| {
            task.graphs.iter().filter_map(|graph| structures.get(&graph.path).copied()).collect()
        })
        .collect();
    let views: Vec<split::Task<'_>> = tasks
        .iter()
        .zip(&of_task)
        .map(|(task, structures)| split::Task { ops: &task.ops, structures })
        .collect();
    let mut evaluation = Vec::new();
    for kind in [PieceKind::Fusible, PieceKind::SoleOp, PieceKind::Typical] {
        let least = options.least_graphs.of(kind);
        let may_be_asked = |n: &usize| tasks[*n].kind == kind && tasks[*n].graphs.len() >= least;
        let numbers: Vec<usize> = (0..tasks.len()).filter(may_be_asked).collect();
        let of_kind: Vec<split::Task<'_>> = numbers.iter().map(|n| views[*n]).collect();
        let count = if kind == PieceKind::SoleOp { options.sole_op } else { options.evaluation };
        let chosen = split::choose_evaluation(&of_kind, count);
        evaluation.extend(chosen.into_iter().map(|place| numbers[place]));
    }
    let sides = split::split(&views, &evaluation);
    if let Some(overlap) = split::violations(&views, &sides).first() {
        let message =
            format!("task `{}` stands on both sides of the split", tasks[overlap.task].id);
        let kind = StoreErrorKind::Damaged(message);
        return Err(StoreError { store: store.path().to_owned(), kind });
    }
    for task in &sides.training {
        let is_withheld = of_task[*task].iter().any(|found| withheld.structures.contains(found));
        tasks[*task].side =
            Some(if is_withheld { SplitSide::Withheld } else { SplitSide::Training });
    }
    for overlap in &sides.withheld {
        tasks[overlap.task].side = Some(SplitSide::Withheld);
    }
    for task in &sides.evaluation {
        tasks[*task].side = Some(SplitSide::Evaluation);
    }
    save(store, &tasks)?;
    Ok(reports(&tasks))
}

fn reports(tasks: &[StoredTask]) -> Vec<SplitReport> {
    let mut by_kind: BTreeMap<PieceKind, Vec<&StoredTask>> = BTreeMap::new();
    for task in tasks {
        by_kind.entry(task.kind).or_default().push(task);
    }
    let report = |(kind, tasks): (PieceKind, Vec<&StoredTask>)| {
        let on = |side| tasks.iter().filter(|task| task.side == Some(side)).count();
        let transitions = |side: Option<SplitSide>| {
            let chosen = tasks.iter().filter(|task| side.is_none() || task.side == side);
            let pairs = chosen.flat_map(|task| task.ops.windows(2));
            pairs.collect::<std::collections::BTreeSet<_>>().len()
        };
        SplitReport {
            kind,
            evaluation: on(SplitSide::Evaluation),
            training: on(SplitSide::Training),
            withheld: on(SplitSide::Withheld),
            transitions: transitions(None),
            transitions_shown: transitions(Some(SplitSide::Evaluation)),
        }
    };
    by_kind.into_iter().map(report).collect()
}
