//! `passnet bench`: evaluate passes on samples.

mod self_check;
mod show;

use super::engine::{EngineArg, EngineArgs};
use super::judging::Judging;
use crate::error::{CommandError, Outcome};
use crate::output::{Output, warn};
use crate::progress::Bar;
use clap::{Args, ValueEnum};
use passnet_bench::bench::{Bench, Compiler, Judged};
use passnet_bench::evaluate::EvaluateOptions;
use passnet_bench::roofline::Roofline;
use passnet_bench::run::{Event, RunStore};
use passnet_bench::sample::{self, Sample, labels};
use passnet_bench::score::Parameters;
use passnet_bench::verdict::VerdictKind;
use passnet_dataset::progress::Task;
use passnet_engine::{Engine, Identity};
use std::collections::BTreeMap;
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
The same command with the same --out goes on where it was stopped. A result is known again only where it comes from the
same engine, device, versions and build. A graph that the machine kept from being judged (a missing library, a killed
process, a full disk) is no failure of the pass: it is not stored, the exit code is 3, and the next run takes it up.")]
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

    /// Judge graphs again whose stored result is a failure
    #[arg(long, requires = "out")]
    retry_failed: bool,

    #[command(flatten)]
    judging: Judging,

    /// Attack the benchmark with all known exploits and race eager against itself
    #[arg(long)]
    self_check: bool,

    /// The exploits of `--self-check`, instead of the bundled ones
    #[arg(long, value_name = "DIR", requires = "self_check")]
    suite: Option<PathBuf>,

    /// Only those cases of `--self-check` whose name holds this; eager is not raced then
    #[arg(long, value_name = "NAME", requires = "self_check")]
    filter: Option<String>,

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

impl BenchArgs {
    /// Refuses a compiler that the engine does not have.
    fn check(&self) -> Result<(), CommandError> {
        let (compiler, needs) = match (self.compiler, self.engine.engine) {
            (CompilerArg::Inductor, EngineArg::Native) => ("inductor", "torch"),
            (CompilerArg::Joined, EngineArg::Torch) => ("joined", "native"),
            _ => return self.engine.check(),
        };
        let message = format!("`--compiler {compiler}` needs `--engine {needs}`");
        Err(CommandError::input(message).with_hint(match needs {
            "torch" => {
                "TorchInductor is part of PyTorch; `passnet doctor` says what this machine has"
            }
            _ => "joining operations is what the native engine does by itself",
        }))
    }
}

pub fn run(args: BenchArgs, out: &mut Output) -> Result<Outcome, CommandError> {
    args.check()?;
    if args.self_check {
        return self_check::run(&args, out);
    }
    let parameters = Parameters::checked(args.b, args.p).map_err(CommandError::input)?;
    let samples = read_samples(&args.samples)?;
    let folders = pass_folders(&args, &samples)?;
    let engine = args.engine.start()?;
    let mut bench = args.bench(&*engine);
    let mut store = match &args.out {
        Some(folder) => Some(RunStore::open(folder)?),
        None => None,
    };
    if let (Some(store), true) = (&mut store, args.retry_failed) {
        store.forget_failures();
    }
    bench.options.noise_floor = bench.measure_noise(&samples);
    if let Some(store) = &mut store {
        store.append(&bench.start())?;
    }
    let bar = Bar::new();
    let total = samples.iter().map(|sample| sample.graphs.len() as u64).sum();
    let mut task = Task::begin(&bar, "evaluating graphs", Some(total));
    let mut judged = Judged::default();
    for ((sample, passes), label) in samples.iter().zip(&folders).zip(sample_labels(&samples)) {
        let found = bench.sample(sample, passes, store.as_mut(), &mut |_| task.advance(1))?;
        judged.extend(found.named(&label));
    }
    drop(task);
    // A run with graphs that are not judged has not come to its end.
    if let Some(store) = store.as_mut().filter(|_| judged.not_judged.is_empty()) {
        store.append(&Event::End { graphs: judged.events.len() })?;
    }
    let identity = engine.identity();
    let shown = show::Shown {
        run: args.out.as_deref(),
        identity: &identity,
        noise_floor: bench.options.noise_floor,
        parameters,
        judged: &judged,
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
    Ok(outcome(&judged))
}

/// How a command that judged graphs ends.
pub(crate) fn outcome(judged: &Judged) -> Outcome {
    let wrong = judged
        .events
        .iter()
        .any(|event| event.evaluation.judged.verdict.kind != VerdictKind::Correct);
    match judged.not_judged.is_empty() {
        true => Outcome::failed_if(wrong),
        false => Outcome::NotJudged,
    }
}

/// Prints results the way `passnet bench` does.
pub(crate) fn print_results(
    run: Option<&Path>,
    identity: &Identity,
    noise_floor: f64,
    judged: &Judged,
    out: &mut Output,
) -> Result<(), CommandError> {
    let parameters = Parameters::default();
    let shown = show::Shown { run, identity, noise_floor, parameters, judged };
    if out.is_json() { shown.json(out) } else { shown.print(out) }
}

fn read_samples(paths: &[PathBuf]) -> Result<Vec<Sample>, CommandError> {
    let folders = sample::find(paths)?;
    Ok(folders.iter().map(|folder| Sample::read(folder)).collect::<Result<_, _>>()?)
}

/// Samples by names that tell them apart.
pub(crate) fn sample_labels(samples: &[Sample]) -> Vec<String> {
    let paths: Vec<String> = samples.iter().map(|s| s.path.display().to_string()).collect();
    let keys = || samples.iter().zip(&paths).map(|(sample, path)| (&*sample.name, &**path));
    let labels: BTreeMap<(&str, &str), String> = labels(keys());
    keys().map(|key| labels.get(&key).cloned().unwrap_or_else(|| key.0.to_string())).collect()
}

/// Where the passes of each sample are. A folder that holds passes for none of them was mistyped.
fn pass_folders(args: &BenchArgs, samples: &[Sample]) -> Result<Vec<PathBuf>, CommandError> {
    let labels = sample_labels(samples);
    let folders: Vec<PathBuf> = samples
        .iter()
        .zip(&labels)
        .map(|(sample, label)| pass_folder(args.passes.as_deref(), sample, label))
        .collect();
    let Some(given) = args.passes.as_deref().filter(|_| args.compiler == CompilerArg::Pass) else {
        return Ok(folders);
    };
    if folders.iter().any(|folder| folder.is_dir()) {
        return Ok(folders);
    }
    let message = match given.is_dir() {
        false => format!("{}: there is no such folder of passes", given.display()),
        true => format!("{}: no passes for any of these samples", given.display()),
    };
    Err(CommandError::input(message).with_hint(format!(
        "`--passes` takes a folder that holds `{MANIFEST}`, or one with such a folder for each sample, named like it"
    )))
}

/// What makes a folder a pass folder.
const MANIFEST: &str = "sorted_output_pass_rule_names.json";

/// The passes for a sample: the folder given, a folder of the sample's label or name in it, or the sample's own.
fn pass_folder(given: Option<&Path>, sample: &Sample, label: &str) -> PathBuf {
    match given {
        None => sample.pass_folder(),
        Some(given) if given.join(MANIFEST).is_file() => given.to_path_buf(),
        Some(given) if given.join(label).is_dir() => given.join(label),
        Some(given) => given.join(&sample.name),
    }
}
