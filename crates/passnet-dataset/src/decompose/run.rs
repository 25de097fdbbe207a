//! The decompose sweep: all whole models of a store, cut into pieces of one kind.

use super::cutting::cut_ranges;
use super::kernels::{Counts, DecomposeError, recorded_ranges};
use super::plateau::KernelCounts;
use super::sole_op::sole_op_ranges;
use super::typical::{Fold, TypicalOptions, typical_pieces};
use crate::measure::{self, Measure};
use crate::store::{Kind, Record, Store, StoreError};
use crate::sweep::{self, Job, Product, SweepReport};
use passnet_graph::GraphFiles;
use passnet_graph::infer::infer_folder;
use passnet_graph::read::read_folder;
use passnet_work::progress::{Progress, Task};
use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::ops::Range;

/// How to choose the ranges.
#[derive(Debug)]
pub enum Method<'a> {
    /// Every operation alone.
    SoleOp,
    /// Sequences that the corpus repeats.
    Typical(TypicalOptions),
    /// What a compiler runs as one kernel.
    Fusible(Counts<'a>),
}

impl Method<'_> {
    /// The kind of the pieces that it makes.
    pub fn kind(&self) -> Kind {
        match self {
            Method::SoleOp => Kind::SoleOp,
            Method::Typical(_) => Kind::Typical,
            Method::Fusible(_) => Kind::Fusible,
        }
    }
}

/// What a decomposition did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DecomposeReport {
    /// Models and pieces.
    pub sweep: SweepReport,
    /// The folds of a search for typical pieces.
    pub folds: Vec<Fold>,
    /// Ranges chosen, where they are chosen before cutting.
    pub ranges: u64,
}

/// Where the ranges of a job come from.
enum Ranges {
    /// Chosen beforehand.
    Given(Vec<Range<usize>>),
    Sole,
    Counted,
}

/// Cuts every whole model of the store. Models that were cut before in the same way are passed over. What a piece is
/// given is described by statistics that are derived, or measured where that is asked for.
pub fn decompose(
    store: &mut Store,
    method: &Method<'_>,
    measure: Option<Measure<'_>>,
    workers: NonZeroUsize,
    progress: &dyn Progress,
) -> Result<DecomposeReport, DecomposeError> {
    let models = store.of_kind(Kind::Full)?;
    let mut report = DecomposeReport::default();
    let jobs = match method {
        Method::SoleOp => jobs(models, |_| (Ranges::Sole, String::new())),
        Method::Typical(options) => {
            let (sequences, models) = op_sequences(store, models, workers, progress)?;
            let _task = Task::begin(progress, "searching typical pieces", None);
            let found = typical_pieces(&sequences, options).map_err(DecomposeError::TooManyOps)?;
            report.folds = found.folds;
            let mut ranges = found.ranges.into_iter();
            jobs(models, |_| given(ranges.next().unwrap_or_default()))
        }
        Method::Fusible(Counts::Model(model)) => {
            jobs(models, |_| (Ranges::Counted, model.name().to_string()))
        }
        Method::Fusible(Counts::Recorded(folder)) => {
            let mut found = BTreeMap::new();
            for model in &models {
                let ranges =
                    recorded_ranges(folder, &model.path).map_err(DecomposeError::Counts)?;
                found.insert(model.path.clone(), ranges);
            }
            jobs(models, |model| given(found.remove(&model.path).unwrap_or_default()))
        }
    };
    report.ranges = jobs
        .iter()
        .map(|job| match &job.task {
            Ranges::Given(ranges) => ranges.len() as u64,
            Ranges::Sole | Ranges::Counted => 0,
        })
        .sum();
    let kind = method.kind();
    let name = format!("decompose {kind}");
    let stamp = measure::stamp(measure);
    let stamped = |mut job: Job<Ranges>| {
        job.settings.push_str(&stamp);
        job
    };
    let jobs = jobs.into_iter().map(stamped).collect();
    report.sweep = sweep::run(store, &name, jobs, workers, progress, |files, job| {
        cut_model(files, &job.task, method, measure)
    })?;
    Ok(report)
}

fn given(ranges: Vec<Range<usize>>) -> (Ranges, String) {
    let settings = format!("{ranges:?}");
    (Ranges::Given(ranges), settings)
}

fn jobs(
    models: Vec<Record>,
    mut choose: impl FnMut(&Record) -> (Ranges, String),
) -> Vec<Job<Ranges>> {
    let job = |record: Record| {
        let (task, settings) = choose(&record);
        Job { record, task, settings }
    };
    models.into_iter().map(job).collect()
}

fn cut_model(
    files: &GraphFiles,
    ranges: &Ranges,
    method: &Method<'_>,
    measure: Option<Measure<'_>>,
) -> Product {
    let mut product = Product::default();
    let folder = match read_folder(files) {
        Ok(folder) => folder,
        Err(errors) => {
            errors.iter().take(1).for_each(|error| product.refuse(files.path.as_str(), error));
            return product;
        }
    };
    if matches!(ranges, Ranges::Given(ranges) if ranges.is_empty()) {
        return product;
    }
    let types = infer_folder(&folder);
    let ranges = match (ranges, method) {
        (Ranges::Given(ranges), _) => ranges.clone(),
        (Ranges::Counted, Method::Fusible(Counts::Model(model))) => {
            let kernels = model.prefix_counts(&folder, &types);
            KernelCounts::of_every_prefix(0, kernels.into_iter().map(u64::from)).ranges_in_piece()
        }
        _ => sole_op_ranges(folder.graph.op_count()).collect(),
    };
    let seen = measure::seen(measure, files, &folder, &mut product);
    let statistics = measure::statistics(&folder, &types, &seen);
    let mut cut = cut_ranges(&files.path, &folder, &types, method.kind(), &ranges, &statistics);
    cut.refusals.append(&mut product.refusals);
    cut
}

/// The op names of all models, one number for each distinct name, and the models that could be read.
fn op_sequences(
    store: &Store,
    models: Vec<Record>,
    workers: NonZeroUsize,
    progress: &dyn Progress,
) -> Result<(Vec<Vec<u32>>, Vec<Record>), StoreError> {
    let mut numbers: BTreeMap<String, u32> = BTreeMap::new();
    let mut sequences = Vec::with_capacity(models.len());
    let mut read = Vec::with_capacity(models.len());
    let names = |_: &Record, files: &GraphFiles| -> Option<Vec<String>> {
        let folder = read_folder(files).ok()?;
        Some(folder.graph.calls().map(|(_, call)| call.target.op_name().into_owned()).collect())
    };
    sweep::read_all(
        store,
        models,
        "reading op names",
        workers,
        progress,
        names,
        |model, names| {
            // Entries were readable when they came in; what is not by now is cut by no method.
            let Some(names) = names else { return Ok(()) };
            let number = |name: String| {
                let next = numbers.len() as u32;
                *numbers.entry(name).or_insert(next)
            };
            sequences.push(names.into_iter().map(number).collect());
            read.push(model);
            Ok(())
        },
    )?;
    Ok((sequences, read))
}
