//! `passnet bench`: evaluate passes on samples.

mod self_check;
mod show;

use super::engine::EngineArgs;
use super::judging::Judging;
use crate::error::{CommandError, Outcome};
use crate::output::{Output, warn};
use crate::progress::Bar;
use clap::{Args, ValueEnum};
use passnet_bench::bench::{Bench, Compiler};
use passnet_bench::evaluate::EvaluateOptions;
use passnet_bench::roofline::Roofline;
use passnet_bench::run::{Event, GraphEvent, RunStore};
use passnet_bench::sample::{self, Sample};
use passnet_bench::score::Parameters;
use passnet_bench::verdict::VerdictKind;
use passnet_dataset::progress::Task;
use passnet_engine::Engine;
use std::path::{Path, PathBuf};

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  passnet bench bench/tasks --passes bench/passes        all bundled tasks with their passes
  passnet bench SAMPLE --passes my_pass --out runs/mine  one task, one pass folder, results kept
  passnet bench bench/tasks --compiler eager             eager against itself: the noise of this machine
  passnet bench bench/tasks --compiler joined            what the native engine gains by joining operations itself
  passnet bench bench/tasks --engine torch --compiler inductor   TorchInductor against eager PyTorch
  passnet bench --self-check                             all exploits and their honest controls
The same command with the same --out goes on where it was stopped.")]
pub struct BenchArgs {
    /// Sample folders, or folders of them
    #[arg(required_unless_present = "self_check")]
    samples: Vec<PathBuf>,

    /// A pass folder, or a folder with one pass folder per sample; else each sample's own `pass_dir`
    #[arg(long, value_name = "DIR")]
    passes: Option<PathBuf>,

    #[command(flatten)]
    engine: EngineArgs,

    /// What is compared with eager
    #[arg(long, value_enum, default_value_t = CompilerArg::Pass)]
    compiler: CompilerArg,

    /// Keep the results in this folder, and go on with what is there
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,

    #[command(flatten)]
    judging: Judging,

    /// Attack the benchmark with all known exploits and race eager against itself
    #[arg(long)]
    self_check: bool,

    /// The exploits of `--self-check`, instead of the bundled ones
    #[arg(long, value_name = "DIR", requires = "self_check")]
    suite: Option<PathBuf>,

    /// What a failed graph scores (above 0, at most 1)
    #[arg(long, default_value_t = 0.1, value_name = "B", allow_negative_numbers = true)]
    b: f64,

    /// Penalty on slow-downs: a speed-up s below 1 counts as s^(p+1)
    #[arg(long, default_value_t = 0.0, value_name = "P", allow_negative_numbers = true)]
    p: f64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum CompilerArg {
    Pass,
    Eager,
    /// TorchInductor; needs `--engine torch`
    Inductor,
    /// The native engine's own joining of elementwise operations
    Joined,
}

impl BenchArgs {
    fn bench<'a>(&self, engine: &'a dyn Engine) -> Bench<'a> {
        Bench {
            engine,
            compiler: match self.compiler {
                CompilerArg::Pass => Compiler::Pass,
                CompilerArg::Eager => Compiler::Eager,
                CompilerArg::Inductor => Compiler::Inductor,
                CompilerArg::Joined => Compiler::Joined,
            },
            options: EvaluateOptions { tier: self.engine.tier.into(), ..self.judging.options() },
            rules: self.judging.rules(),
            roofline: Roofline::default(),
        }
    }
}

pub fn run(args: BenchArgs, out: &mut Output) -> Result<Outcome, CommandError> {
    if args.self_check {
        return self_check::run(&args, out);
    }
    let parameters = Parameters::checked(args.b, args.p).map_err(CommandError::input)?;
    let samples = read_samples(&args.samples)?;
    let engine = args.engine.start()?;
    let mut bench = args.bench(&*engine);
    let mut store = match &args.out {
        Some(folder) => Some(RunStore::open(folder)?),
        None => None,
    };
    bench.options.noise_floor = bench.measure_noise(&samples);
    if let Some(store) = &mut store {
        store.append(&bench.start())?;
    }
    let bar = Bar::new();
    let total = samples.iter().map(|sample| sample.graphs.len() as u64).sum();
    let mut task = Task::begin(&bar, "evaluating graphs", Some(total));
    let mut events: Vec<GraphEvent> = Vec::new();
    for sample in &samples {
        let passes = pass_folder(args.passes.as_deref(), sample);
        let found = bench.sample(sample, &passes, store.as_mut(), &mut |_| task.advance(1))?;
        events.extend(found);
    }
    drop(task);
    if let Some(store) = &mut store {
        store.append(&Event::End { graphs: events.len() })?;
    }
    let shown = show::Shown {
        run: args.out.as_deref(),
        noise_floor: bench.options.noise_floor,
        parameters,
        events: &events,
    };
    if out.is_json() {
        shown.json(out)?;
    } else {
        shown.print(out)?;
        if args.out.is_none() {
            warn("note: nothing was kept; `--out DIR` keeps results for `passnet report`");
        }
    }
    out.flush()?;
    let failed = |event: &GraphEvent| event.evaluation.judged.verdict.kind != VerdictKind::Correct;
    Ok(Outcome::failed_if(events.iter().any(failed)))
}

/// Prints results the way `passnet bench` does.
pub(crate) fn print_results(
    run: Option<&Path>,
    noise_floor: f64,
    events: &[GraphEvent],
    out: &mut Output,
) -> Result<(), CommandError> {
    let shown = show::Shown { run, noise_floor, parameters: Parameters::default(), events };
    if out.is_json() { shown.json(out) } else { shown.print(out) }
}

fn read_samples(paths: &[PathBuf]) -> Result<Vec<Sample>, CommandError> {
    let folders = sample::find(paths)?;
    Ok(folders.iter().map(|folder| Sample::read(folder)).collect::<Result<_, _>>()?)
}

/// The passes for a sample: the folder given, a folder of the sample's name in it, or the sample's own.
fn pass_folder(given: Option<&Path>, sample: &Sample) -> PathBuf {
    match given {
        None => sample.pass_folder(),
        Some(given) if given.join("sorted_output_pass_rule_names.json").is_file() => {
            given.to_path_buf()
        }
        Some(given) => given.join(&sample.name),
    }
}
