//! Statistics of intermediates as a run of the whole model shows them. What runs a model is the caller's.

use crate::sweep::Product;
use passnet_graph::infer::Inference;
use passnet_graph::stats::{self, Seen, Stats};
use passnet_graph::{GraphFiles, GraphFolder};
use std::fmt;

/// What a run of a model shows of its intermediates, or why it was not run.
type Run<'a> = dyn Fn(&GraphFiles, &GraphFolder) -> Result<Vec<Seen>, String> + Sync + 'a;

/// Runs whole models and looks at what they compute.
#[derive(Clone, Copy)]
pub struct Measure<'a> {
    run: &'a Run<'a>,
    /// The limits it keeps to: with other ones, pieces are made again.
    settings: &'a str,
}

impl fmt::Debug for Measure<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Measure").field("settings", &self.settings).finish_non_exhaustive()
    }
}

impl<'a> Measure<'a> {
    /// With what runs a model, and the limits that it keeps to.
    pub fn new(run: &'a Run<'a>, settings: &'a str) -> Self {
        Measure { run, settings }
    }
}

/// What a job's pieces depend on beside its own settings.
pub(crate) fn stamp(measure: Option<Measure<'_>>) -> String {
    measure.map_or_else(String::new, |measure| format!(" measured {}", measure.settings))
}

/// What a run of the model showed; nothing, with the reason in the product, where it was not run.
pub(crate) fn seen(
    measure: Option<Measure<'_>>,
    files: &GraphFiles,
    folder: &GraphFolder,
    product: &mut Product,
) -> Vec<Seen> {
    let Some(measure) = measure else { return Vec::new() };
    (measure.run)(files, folder).unwrap_or_else(|why| {
        product.refuse(format!("{} statistics", files.path), format!("not measured: {why}"));
        Vec::new()
    })
}

/// Statistics of a model: derived, and as a run showed them where there was one.
pub(crate) fn statistics(folder: &GraphFolder, types: &Inference, seen: &[Seen]) -> Stats {
    let mut statistics = stats::propagate(folder, types);
    statistics.measured(&folder.graph, types, seen);
    statistics
}
