//! The five constraints that every graph of the dataset must meet, checked without running anything.
//!
//! | constraint | checked as |
//! |---|---|
//! | runnable | inference gives every value a type; an engine, where there is one, runs the graph |
//! | serialisable | printed and read again, the graph is the same and has the same identity |
//! | decomposable | cut in two at its middle, the halves fit together: what flows from the first into the second and out of both has the types it has in the whole |
//! | analysable | every operation is in the table and every call fits its signature |
//! | custom operations available | no operation comes from outside torch |

use crate::store::{Kind, Record, Store, StoreError};
use crate::sweep;
use passnet_graph::cut::{CutError, Piece, cut_with};
use passnet_graph::graph::Target;
use passnet_graph::infer::{Inference, Value, infer_folder};
use passnet_graph::read::{GraphFolder, read_folder};
use passnet_graph::{GraphFiles, identify, stats};
use passnet_work::progress::Progress;
use serde::Serialize;
use std::collections::BTreeMap;
use std::num::NonZeroUsize;

/// The constraints, in the order of the table above.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Constraint {
    /// Every value has a type, and an engine runs it.
    Runnable,
    /// Written and read again it is the same graph.
    Serialisable,
    /// Cut in two, its halves fit together.
    Decomposable,
    /// Every call fits the signature of an operation of the table.
    Analysable,
    /// No operation comes from outside torch.
    CustomOpsAvailable,
}

impl Constraint {
    /// All of them, in order.
    pub const ALL: [Self; 5] = [
        Self::Runnable,
        Self::Serialisable,
        Self::Decomposable,
        Self::Analysable,
        Self::CustomOpsAvailable,
    ];

    /// What reports call it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Runnable => "runnable",
            Self::Serialisable => "serialisable",
            Self::Decomposable => "decomposable",
            Self::Analysable => "analysable",
            Self::CustomOpsAvailable => "custom ops available",
        }
    }
}

/// A constraint that a graph does not meet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Violation {
    /// The constraint.
    pub constraint: Constraint,
    /// Why it is not met.
    pub reason: String,
}

/// Runs a graph for the first constraint; `Err` says why it does not run.
pub type Runner<'a> = &'a (dyn Fn(&GraphFiles, &GraphFolder) -> Result<(), String> + Sync);

/// All violations of one graph.
pub fn verify_graph(files: &GraphFiles, runner: Option<Runner<'_>>) -> Vec<Violation> {
    let mut violations = Vec::new();
    let mut violate =
        |constraint, reason: String| violations.push(Violation { constraint, reason });
    let folder = match read_folder(files) {
        Ok(folder) => folder,
        Err(errors) => {
            let reason = errors.first().map(ToString::to_string).unwrap_or_default();
            return vec![Violation { constraint: Constraint::Serialisable, reason }];
        }
    };
    let types = infer_folder(&folder);
    if let Err(reason) = runs(files, &folder, &types, runner) {
        violate(Constraint::Runnable, reason);
    }
    if let Err(reason) = round_trip(files, &folder) {
        violate(Constraint::Serialisable, reason);
    }
    if let Err(reason) = halves_fit(&folder, &types) {
        violate(Constraint::Decomposable, reason);
    }
    let mut calls = folder.graph.calls();
    if let Some(reason) = calls.find_map(|(_, call)| match &call.target {
        Target::Unknown { .. } => Some(format!("unknown operation `{}`", call.target)),
        _ => call.bind().err(),
    }) {
        violate(Constraint::Analysable, reason);
    }
    let is_custom = |target: &Target| {
        matches!(target, Target::Unknown { path, .. }
        if !path.starts_with("torch") && path.contains('.'))
    };
    if let Some((_, call)) = folder.graph.calls().find(|(_, call)| is_custom(&call.target)) {
        violate(Constraint::CustomOpsAvailable, format!("`{}` is not part of torch", call.target));
    }
    violations
}

fn runs(
    files: &GraphFiles,
    folder: &GraphFolder,
    types: &Inference,
    runner: Option<Runner<'_>>,
) -> Result<(), String> {
    if folder.metas.len() != folder.graph.placeholder_count() {
        return Err("shapes and dtypes of the arguments are not recorded".into());
    }
    if let Some(failure) = types.failures.first() {
        return Err(format!("`{}` (line {}): {}", failure.name, failure.line, failure.message));
    }
    runner.map_or(Ok(()), |run| run(files, folder))
}

fn round_trip(files: &GraphFiles, folder: &GraphFolder) -> Result<(), String> {
    let printed = crate::describe::files_of(files.path.clone(), folder, &[]);
    let again = read_folder(&printed)
        .map_err(|errors| errors.first().map(ToString::to_string).unwrap_or_default())?;
    if again.graph != folder.graph {
        return Err("the printed graph reads as another graph".into());
    }
    let identity = |folder: &GraphFolder| identify(&folder.graph, &folder.metas);
    // Without metadata there is no file to read it from again.
    if !folder.metas.is_empty() && identity(&again) != identity(folder) {
        return Err("the printed graph has another identity".into());
    }
    Ok(())
}

/// Cuts the graph in two and compares the types at the seams with those of the whole.
fn halves_fit(folder: &GraphFolder, types: &Inference) -> Result<(), String> {
    let ops = folder.graph.op_count();
    if ops == 0 {
        return Err("there is nothing to cut".into());
    }
    let middle = ops / 2;
    let statistics = stats::propagate(folder, types);
    for range in [0..middle, middle..ops, 0..ops] {
        if range.is_empty() {
            continue;
        }
        match cut_with(folder, types, &statistics, range) {
            Ok(piece) => agrees(&piece, types)?,
            // A half that only has effects, or ends inside a region, is no piece: another cut is.
            Err(CutError::NoOutputs | CutError::Region { .. }) => {}
            Err(error) => return Err(error.to_string()),
        }
    }
    Ok(())
}

fn agrees(piece: &Piece, whole: &Inference) -> Result<(), String> {
    let types = infer_folder(&piece.folder);
    if let Some(failure) = types.failures.first() {
        return Err(format!("as a piece, `{}`: {}", failure.name, failure.message));
    }
    let outputs = piece.folder.graph.outputs.iter().filter_map(|output| output.as_node());
    for (output, parent) in outputs.zip(&piece.outputs) {
        let (Value::Tensor(here), Value::Tensor(there)) =
            (types.value(output), whole.value(*parent))
        else {
            continue;
        };
        if here.sizes() != there.sizes() || here.dtype != there.dtype {
            let name = &piece.folder.graph.node(output).name;
            return Err(format!("`{name}` has another type in the piece than in the whole"));
        }
    }
    Ok(())
}

/// How many graphs meet each constraint.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct VerifyReport {
    /// Graphs that were looked at.
    pub graphs: u64,
    /// Those that meet all constraints.
    pub sound: u64,
    /// Graphs that do not meet a constraint, by constraint.
    pub violations: BTreeMap<Constraint, u64>,
}

/// Verifies all graphs of some kinds; `each` sees every graph with its violations, in path order.
pub fn verify(
    store: &Store,
    kinds: &[Kind],
    runner: Option<Runner<'_>>,
    workers: NonZeroUsize,
    progress: &dyn Progress,
    mut each: impl FnMut(&Record, &[Violation]) -> Result<(), StoreError>,
) -> Result<VerifyReport, StoreError> {
    let mut records = Vec::new();
    for kind in kinds {
        records.extend(store.of_kind(*kind)?);
    }
    let mut report = VerifyReport::default();
    let look = |_: &Record, files: &GraphFiles| verify_graph(files, runner);
    sweep::read_all(store, records, "verifying", workers, progress, look, |record, found| {
        report.graphs += 1;
        report.sound += u64::from(found.is_empty());
        for violation in &found {
            *report.violations.entry(violation.constraint).or_insert(0) += 1;
        }
        each(&record, &found)
    })?;
    Ok(report)
}
