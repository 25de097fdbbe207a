//! `passnet dataset build`

use super::build_report::{self, Models};
use super::decompose::{self, PieceArg};
use super::measure::MeasureArgs;
use super::{Workers, import, sorted_reasons, split, sweep_json, vary};
use crate::commands::extract::{self, CaptureArgs, Catalogue};
use crate::error::{CommandError, Outcome};
use crate::output::{Output, table, warn};
use crate::progress::Bar;
use clap::Args;
use passnet_bench::shard::Shard;
use passnet_dataset::decompose::run::Method;
use passnet_dataset::estimate::Estimate;
use passnet_dataset::pipeline::{BuildOptions, Step, StepResult, build};
use passnet_dataset::source::{self, Limits};
use passnet_dataset::stats::stats;
use passnet_dataset::store::{Kind, Store};
use passnet_dataset::sweep::SweepReport;
use serde_json::{Value, json};
use std::path::PathBuf;
use std::time::Instant;

#[derive(Debug, Args)]
pub struct BuildArgs {
    /// A folder tree or archive of whole models
    #[arg(long, value_name = "PATH", required_unless_present = "from_catalogue")]
    from: Option<PathBuf>,

    /// Capture the models of these packages first, as `passnet extract` does
    #[arg(long, value_enum, value_delimiter = ',', requires = "models", conflicts_with = "from")]
    from_catalogue: Vec<Catalogue>,

    /// Where captured models go
    #[arg(long, value_name = "DIR", requires = "from_catalogue")]
    models: Option<PathBuf>,

    #[command(flatten)]
    pub(super) capture: CaptureArgs,

    /// Write what was built as a page, with pictures
    #[arg(long, value_name = "FILE.html")]
    report: Option<PathBuf>,

    /// The store file; made if there is none
    #[arg(long, value_name = "FILE")]
    store: PathBuf,

    /// Kinds of pieces to make
    #[arg(long, value_enum, value_delimiter = ',', default_value = "typical,fusible")]
    kind: Vec<PieceArg>,

    #[command(flatten)]
    choice: decompose::PieceChoice,

    /// How equal pieces of one kind must be to collapse before they are varied
    #[arg(long, value_enum, default_value_t = super::dedup::LevelArg::Literals)]
    level: super::dedup::LevelArg,

    #[command(flatten)]
    variants: vary::VariantChoice,

    #[command(flatten)]
    measure: MeasureArgs,

    /// Evaluation tasks of each kind
    #[arg(long, default_value_t = 200, value_name = "N")]
    evaluation: usize,

    #[command(flatten)]
    workers: Workers,
}

pub fn run(args: BuildArgs, output: &mut Output) -> Result<Outcome, CommandError> {
    let workers = args.workers.count();
    let methods =
        args.kind.iter().map(|kind| args.choice.method(*kind)).collect::<Result<Vec<_>, _>>()?;
    let models = capture_models(&args)?;
    if let Some(shard) = args.capture.shard {
        return captured_part(shard, &args, models.as_ref(), output);
    }
    let from = models_of(&args)?;
    let kinds: Vec<Kind> = methods.iter().map(Method::kind).collect();
    let mut estimate = Estimate::of_source(&from, &kinds, workers)?;
    warn(&expectation(&estimate));
    let source = source::open(&from, Limits::default())?;
    let mut store = Store::open_for_writing(&args.store, workers)?;
    let began = Instant::now();
    let mut done = 0;
    let steps = args.measure.with(|measure| {
        let options = BuildOptions {
            workers,
            methods,
            level: args.level.into(),
            vary: args.variants.options(Vec::new()),
            measure,
            evaluation: args.evaluation,
        };
        build(&mut store, source, &options, &Bar::new(), |step| {
            if let StepResult::Import(report) = &step.result {
                // Now they are counted.
                let models = report.added + report.replaced + report.skipped;
                estimate = Estimate::of_models(models, &kinds, workers);
            }
            done += 1;
            let elapsed = began.elapsed().as_secs_f64();
            let all = estimate.seconds_after(done, elapsed);
            let result = summary(&step.result);
            warn(&format!("{}: {result} ({elapsed:.0} s of about {all:.0})", step.name));
        })
    })?;
    for step in &steps {
        if let StepResult::Split(reports) = &step.result {
            split::note_few(reports, args.evaluation);
        }
    }
    if let Some(path) = &args.report {
        let kinds: Vec<Kind> = std::iter::once(Kind::Full).chain(kinds).collect();
        let stats = stats(&store, &kinds, workers, &Bar::new())?;
        let built: Vec<(String, f64, String)> = steps
            .iter()
            .map(|step| (step.name.clone(), step.time.as_secs_f64(), summary(&step.result)))
            .collect();
        std::fs::write(path, build_report::page(models.as_ref(), &built, &stats))?;
    }
    if output.is_json() {
        steps.iter().try_for_each(|step| output.json(&to_json(step)))?;
    } else {
        show(output, &steps)?;
        output.line(format!("content {}", store.content()?))?;
    }
    let failed = |step: &Step| matches!(&step.result, StepResult::Import(r) if r.failed > 0);
    Ok(Outcome::failed_if(steps.iter().any(failed)))
}

/// What a build will take, for people.
fn expectation(estimate: &Estimate) -> String {
    format!(
        "about {} models, which become {} graphs in about {:.0} s, and a store of about {:.0} MB",
        estimate.models,
        estimate.graphs,
        estimate.seconds(),
        (estimate.store_bytes as f64 / 1e6).max(1.0),
    )
}

/// Captures the models of the catalogue, where that was asked for, and sets those aside that break a constraint.
fn capture_models(args: &BuildArgs) -> Result<Option<Models>, CommandError> {
    match (&args.from, &args.models) {
        (None, Some(models)) => {
            let chosen = extract::Chosen { catalogue: &args.from_catalogue, ..Default::default() };
            extract::capture(chosen, models, &args.capture)?;
            extract::check(models)?;
            let (records, refused) = (extract::records(models)?, extract::refused(models)?);
            Ok(Some(Models { records, refused }))
        }
        _ => Ok(None),
    }
}

/// A part of the models is captured, and no store made of it: which pieces repeat, and how tasks are split, is only known
/// with all of them.
fn captured_part(
    shard: Shard,
    args: &BuildArgs,
    models: Option<&Models>,
    output: &mut Output,
) -> Result<Outcome, CommandError> {
    let Some((models, folder)) = models.zip(args.models.as_ref()) else {
        let error = CommandError::input("`--shard` needs `--from-catalogue`");
        return Err(error.with_hint("parts of a dataset are parts of the models that are captured"));
    };
    let captured = models.records.values().filter(|record| record.is_captured()).count();
    if output.is_json() {
        let tried = models.records.len();
        output.json(&json!({"shard": shard, "models": tried, "captured": captured}))?;
    } else {
        output.line(format!(
            "shard {shard}: {captured} of {} models captured into {}",
            models.records.len(),
            folder.display()
        ))?;
        output.line("next: `passnet merge` the parts, then this command with `--models` of the whole, without `--shard`")?;
    }
    Ok(Outcome::Done)
}

/// Where the models are.
fn models_of(args: &BuildArgs) -> Result<PathBuf, CommandError> {
    match (&args.from, &args.models) {
        (Some(from), _) => Ok(from.clone()),
        (None, Some(models)) => Ok(models.join(extract::SAMPLES)),
        (None, None) => Err(CommandError::input("`--from` or `--from-catalogue` is needed")),
    }
}

fn to_json(step: &Step) -> Value {
    let result = match &step.result {
        StepResult::Import(report) => import::to_json(report),
        StepResult::Decompose(report) => decompose::to_json(report),
        StepResult::Dedup(report) => {
            json!({"looked_at": report.looked_at, "removed": report.removed})
        }
        StepResult::Vary(report) => sweep_json(report),
        StepResult::Sample(tasks) => json!({"tasks": tasks}),
        StepResult::Split(reports) => reports.iter().map(split::to_json).collect(),
    };
    json!({"step": step.name, "seconds": step.time.as_secs_f64(), "result": result})
}

fn show(output: &mut Output, steps: &[Step]) -> Result<(), CommandError> {
    let mut shown = table(["step", "seconds", "result"]);
    for step in steps {
        let seconds = format!("{:.1}", step.time.as_secs_f64());
        shown.add_row([step.name.clone(), seconds, summary(&step.result)]);
    }
    output.table(&shown)?;
    let total: f64 = steps.iter().map(|step| step.time.as_secs_f64()).sum();
    output.line(format!("{total:.1} s in all\n"))?;
    for step in steps {
        if let StepResult::Split(reports) = &step.result {
            split::show(output, reports)?;
        }
    }
    Ok(())
}

fn summary(result: &StepResult) -> String {
    match result {
        StepResult::Import(report) => format!(
            "{} added, {} there already, {} failed",
            report.added + report.replaced,
            report.skipped,
            report.failed
        ),
        StepResult::Decompose(report) => sweep_summary(&report.sweep),
        StepResult::Dedup(report) => {
            format!("{} of {} removed", report.removed, report.looked_at)
        }
        StepResult::Vary(report) => sweep_summary(report),
        StepResult::Sample(tasks) => format!("{tasks} tasks"),
        StepResult::Split(reports) => {
            let tasks: usize = reports.iter().map(|report| report.evaluation).sum();
            format!("{tasks} evaluation tasks")
        }
    }
}

fn sweep_summary(report: &SweepReport) -> String {
    let mut text =
        format!("{} made, {} repeats, {} refused", report.made, report.repeats, report.refused);
    if let Some((_, reason)) = sorted_reasons(report).first() {
        text.push_str(&format!(" (most often: {})", reason.example.reason));
    }
    text
}
