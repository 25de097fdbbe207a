//! Passes to begin with: what the solver writes without measuring, and where it can write nothing, a skeleton.

use crate::analysis::Piece;
use crate::emit::{PassText, skeleton, solution_files, stem};
use crate::explain::Rates;
use crate::graph_family::{GraphFamily, TypedGraph, families};
use crate::solve::{SolveError, SolveOptions, solve, write_files};
use passnet_bench::sample::Sample;
use passnet_engine::Engine;
use passnet_graph::NodeId;
use std::collections::BTreeSet;
use std::path::Path;

/// Calls that are tried one by one for a skeleton.
const MOST_CALLS: usize = 200;

/// What was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scaffold {
    /// The passes, in the order in which they apply.
    pub passes: Vec<String>,
    /// Where a kernel is still to be written: why the solver writes none.
    pub to_write: Option<String>,
}

/// Writes passes for a sample that match and, unless the scaffold says otherwise, are right. Nothing is measured.
pub fn scaffold(
    engine: &dyn Engine,
    sample: &Sample,
    folder: &Path,
) -> Result<Scaffold, SolveError> {
    let options = SolveOptions { tune: false, ..SolveOptions::default() };
    match solve(engine, &Rates::measure(engine), sample, folder, &options) {
        Ok(explanation) => {
            let passes = explanation.passes.into_iter().map(|pass| pass.name).collect();
            Ok(Scaffold { passes, to_write: None })
        }
        Err(SolveError::NothingToFuse { task, reasons }) => {
            let Some(text) = largest_skeleton(sample) else {
                return Err(SolveError::NothingToFuse { task, reasons });
            };
            write_files(folder, solution_files(&[&text]))?;
            Ok(Scaffold { passes: vec![text.stem], to_write: Some(reasons.join("; ")) })
        }
        Err(error) => Err(error),
    }
}

/// A skeleton for the whole of the most frequent graphs, or else for the last of their operations that can have one.
fn largest_skeleton(sample: &Sample) -> Option<PassText> {
    let files = sample.graphs.iter().filter_map(|graph| sample.graph_files(graph).ok());
    let typed: Vec<TypedGraph> = files.filter_map(|files| TypedGraph::read(&files).ok()).collect();
    families(typed, Vec::new()).iter().find_map(|family| {
        let all: BTreeSet<NodeId> = family.graph().calls().map(|(id, _)| id).collect();
        let alone = all.iter().rev().take(MOST_CALLS).map(|id| BTreeSet::from([*id]));
        std::iter::once(all.clone()).chain(alone).find_map(|members| written(family, &members))
    })
}

fn written(family: &GraphFamily, members: &BTreeSet<NodeId>) -> Option<PassText> {
    let piece = Piece::new(family, members).ok()?;
    let stem = stem(&piece.graph, false);
    skeleton(&piece, stem).ok()
}
