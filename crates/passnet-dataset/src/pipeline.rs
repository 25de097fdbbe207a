//! The whole way from whole models to split tasks, one step after another. Every step can be interrupted and run
//! again, so the pipeline can too.

use crate::decompose::kernels::DecomposeError;
use crate::decompose::run::{DecomposeReport, Method, decompose};
use crate::dedup::{DedupOptions, DedupReport, Level, dedup};
use crate::describe::describe;
use crate::import::{ImportOptions, ImportReport, import};
use crate::measure::Measure;
use crate::sample::sides::{SplitReport, split_tasks};
use crate::sample::tasks::sample;
use crate::source::GraphSource;
use crate::store::{Kind, Store};
use crate::sweep::SweepReport;
use crate::vary::run::{VaryOptions, vary};
use passnet_work::progress::Progress;
use std::num::NonZeroUsize;
use std::time::{Duration, Instant};

/// What to build.
#[derive(Debug)]
pub struct BuildOptions<'a> {
    /// Threads of each step.
    pub workers: NonZeroUsize,
    /// The pieces to cut, in this order.
    pub methods: Vec<Method<'a>>,
    /// Pieces that are equal at this level are varied once.
    pub level: Level,
    /// Which variants pieces get.
    pub vary: VaryOptions,
    /// Statistics of intermediates are measured, not only derived.
    pub measure: Option<Measure<'a>>,
    /// Evaluation tasks of each kind.
    pub evaluation: usize,
}

/// One step and what came of it.
#[derive(Debug)]
pub struct Step {
    /// The command that does it, and for which kind.
    pub name: String,
    /// How long it took.
    pub time: Duration,
    /// What it did.
    pub result: StepResult,
}

#[derive(Debug)]
/// What a step did, by what it was.
pub enum StepResult {
    /// Graphs were read.
    Import(ImportReport),
    /// Pieces were cut.
    Decompose(DecomposeReport),
    /// Equal graphs were collapsed.
    Dedup(DedupReport),
    /// Variants were made.
    Vary(SweepReport),
    /// The number of tasks.
    Sample(usize),
    /// Tasks got their sides.
    Split(Vec<SplitReport>),
}

/// Builds a dataset; `done` hears of each step as it ends.
pub fn build(
    store: &mut Store,
    source: impl GraphSource,
    options: &BuildOptions<'_>,
    progress: &dyn Progress,
    mut done: impl FnMut(&Step),
) -> Result<Vec<Step>, DecomposeError> {
    let mut steps: Vec<Step> = Vec::new();
    let mut start = Instant::now();
    let mut finish = |name: String, result: StepResult| {
        let step = Step { name, time: start.elapsed(), result };
        done(&step);
        steps.push(step);
        start = Instant::now();
    };
    let workers = options.workers;
    let import_options = ImportOptions { workers, ..ImportOptions::default() };
    let report = import(store, source, describe, import_options, progress)?;
    finish("import".into(), StepResult::Import(report));
    let full = DedupOptions { kinds: vec![Kind::Full], ..DedupOptions::default() };
    finish("dedup full".into(), StepResult::Dedup(dedup(store, &full, progress)?));
    for method in &options.methods {
        let kind = method.kind();
        let report = decompose(store, method, options.measure, workers, progress)?;
        finish(format!("decompose {kind}"), StepResult::Decompose(report));
        // A build that goes on after a kill finds variants already; one that was never killed makes them later.
        let equal = DedupOptions {
            level: options.level,
            kinds: vec![kind],
            originals_only: true,
            dry_run: false,
        };
        finish(format!("dedup {kind}"), StepResult::Dedup(dedup(store, &equal, progress)?));
    }
    let kinds: Vec<Kind> = options.methods.iter().map(Method::kind).collect();
    let variants = VaryOptions { kinds: kinds.clone(), ..options.vary.clone() };
    let report = vary(store, &variants, options.measure, workers, progress)?;
    finish("vary".into(), StepResult::Vary(report));
    finish("sample".into(), StepResult::Sample(sample(store, &kinds, workers, progress)?.len()));
    finish("split".into(), StepResult::Split(split_tasks(store, options.evaluation)?));
    Ok(steps)
}
