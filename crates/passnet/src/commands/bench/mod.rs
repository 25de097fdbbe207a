//! `passnet bench`: evaluate passes on samples.

mod against;
mod ci;
mod compilers;
mod next;
mod self_check;
mod show;

pub(crate) use compilers::has_compiler;

use super::cluster::unit_worker::{BenchWorker, UnitWorker};
use super::cluster::{self, ClusterArgs, Kind};
use super::engine::EngineArgs;
use super::judging::Judging;
use super::shard::{self, Part};
use crate::embedded;
use crate::error::{CommandError, Outcome};
use crate::interrupt;
use crate::output::{Output, warn};
use crate::paths::with_list;
use crate::progress::Bar;
use clap::Args;
use compilers::{ModeArg, kind_of, subject_parser};
use passnet_bench::bench::{Bench, Judged};
use passnet_bench::evaluate::EvaluateOptions;
use passnet_bench::run::{Event, RunStore, Start};
use passnet_bench::sample::{self, Sample, labels};
use passnet_bench::score::Parameters;
use passnet_bench::shard::Shard;
use passnet_bench::stop;
use passnet_bench::subject::Subject;
use passnet_bench::verdict::VerdictKind;
use passnet_engine::{Engine, GraphCompiler, Identity};
use passnet_work::progress::{Progress, Task};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  passnet bench --bundled                                all bundled tasks with their passes
  passnet bench bench/tasks/swiglu --passes bench/passes/swiglu --out runs/mine   one task, one pass folder, results kept
  passnet bench bench/tasks --compiler eager             eager against itself: the noise of this machine
  passnet bench bench/tasks --compiler joined            what the native engine gains by joining operations itself
  passnet bench bench/tasks --engine torch --compiler inductor   TorchInductor against eager PyTorch
  passnet bench bench/tasks --passes bench/passes --engine torch --device cuda --devices 0,1 \
--against inductor-max-autotune --against cudagraph   on two GPUs, beside two baselines measured once
  passnet bench --list PassNet/sample_lists/eval/hf_fusible_eval_samples_v2.txt   a published list of tasks
  passnet bench examples/graphs/rms_norm_gate --passes examples/passes/rms_norm_gate   a graph is a task of one graph
  passnet bench bench/tasks --passes bench/passes --filter swiglu/ --fail-below 1.0 --junit bench.xml   for CI
  passnet bench bench/tasks --passes bench/passes --shard 0/8 --out shards/0   one of eight parts, for `passnet merge`
  passnet bench bench/tasks --passes bench/passes --cluster auto --out runs/cluster   on the nodes of a Ray cluster
  passnet bench --self-check                             all exploits and their honest controls

Exit codes: 0 every graph is correct, and AS is not below --fail-below; 1 some graph is not, or AS is; 2 bad usage or
input; 3 some graph could not be judged; 130 ended by Ctrl-C.

Ctrl-C lets the graph under way end, shows what was judged and begins no other graph; a second one ends at once.
The same command with the same --out goes on where it was stopped. A result is known again only where it comes from the
same engine, device, versions and build. A graph that the machine kept from being judged (a missing library, a killed
process, a full disk) is no failure of the pass: it is not stored, the exit code is 3, and the next run takes it up.")]
pub struct BenchArgs {
    /// Sample folders, folders of them, or graph folders
    #[arg(required_unless_present_any = ["self_check", "bundled", "list"])]
    samples: Vec<PathBuf>,

    /// The tasks and passes that this program carries, besides the samples named
    #[arg(long, conflicts_with_all = ["self_check", "passes"])]
    bundled: bool,

    /// A published list of samples, as text, table (`sample_path`) or tasks (`.jsonl`); paths from the top of its checkout
    #[arg(long, value_name = "FILE", conflicts_with = "self_check")]
    list: Option<PathBuf>,

    /// A pass folder, or a folder with one pass folder per sample; else each sample's own `pass_dir`
    #[arg(long, value_name = "DIR")]
    passes: Option<PathBuf>,

    #[command(flatten)]
    engine: EngineArgs,

    /// What is compared with eager
    #[arg(long, default_value = "pass", value_parser = subject_parser())]
    compiler: Subject,

    /// What TorchInductor is asked for (with `--compiler inductor`) [default: default]
    #[arg(long, value_enum)]
    mode: Option<ModeArg>,

    /// Show the results beside those of this compiler, which is measured once and kept; may be given again
    #[arg(long, value_name = "COMPILER", conflicts_with = "cluster", value_parser = GraphCompiler::ALL.map(GraphCompiler::name))]
    against: Vec<String>,

    /// Where baselines of `--against` are kept [default: the user's cache folder]
    #[arg(long, value_name = "DIR", requires = "against")]
    baselines: Option<PathBuf>,

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

    /// Only graphs whose `TASK/GRAPH` holds this; with `--self-check` only cases whose name does, and no race of eager
    #[arg(long, value_name = "TEXT")]
    filter: Option<String>,

    /// Judge one of N parts (I from 0 to N-1): tasks go to parts by their names; `passnet merge` puts them together
    #[arg(long, value_name = "I/N", requires = "out", conflicts_with_all = ["self_check", "against", "cluster"])]
    shard: Option<Shard>,

    #[command(flatten)]
    cluster: ClusterArgs,

    #[command(flatten)]
    ci: ci::Ci,

    /// What a failed graph scores (above 0, at most 1)
    #[arg(long, default_value_t = 0.1, value_name = "B", allow_negative_numbers = true)]
    b: f64,

    /// Penalty on slow-downs: a speed-up s below 1 counts as s^(p+1)
    #[arg(long, default_value_t = 0.0, value_name = "P", allow_negative_numbers = true)]
    p: f64,
}

impl BenchArgs {
    fn subject(&self) -> Subject {
        match (self.compiler, self.mode) {
            (Subject::Compiled(GraphCompiler::Inductor(_)), Some(mode)) => {
                Subject::Compiled(GraphCompiler::Inductor(mode.into()))
            }
            (subject, _) => subject,
        }
    }

    /// The baselines asked for, each once.
    fn baselines(&self) -> Vec<GraphCompiler> {
        let named = |compiler: &GraphCompiler| self.against.iter().any(|it| it == compiler.name());
        GraphCompiler::ALL.into_iter().filter(named).collect()
    }

    fn bench<'a>(&self, engine: &'a dyn Engine, subject: Subject) -> Bench<'a> {
        let options = EvaluateOptions { tier: self.engine.choice().tier, ..self.judging.options() };
        Bench::new(engine, subject, options, self.judging.rules())
    }

    /// Refuses a compiler that the engine does not have.
    fn check(&self) -> Result<(), CommandError> {
        let choice = self.engine.choice();
        if self.mode.is_some() && self.compiler.name() != "inductor" {
            let error = CommandError::input("`--mode` needs `--compiler inductor`");
            return Err(error.with_hint("the other compilers have no modes"));
        }
        if let Subject::Compiled(compiler) = self.subject() {
            let flag = format!("--compiler {}", kind_of(compiler));
            has_compiler(&flag, compiler, &choice)?;
        }
        for baseline in self.baselines() {
            has_compiler(&format!("--against {}", baseline.name()), baseline, &choice)?;
        }
        self.ci.check()?;
        self.cluster.check(&choice)?;
        self.engine.check()
    }

    /// What results depend on besides tasks and passes, as one text.
    fn settings(&self) -> String {
        let options = EvaluateOptions { tier: self.engine.choice().tier, ..self.judging.options() };
        let options = serde_json::to_string(&options).unwrap_or_default();
        format!("{} {} {options}", self.subject().name(), self.judging.rules())
    }

    /// Judges tasks for a driver elsewhere.
    pub(super) fn worker(&self) -> Result<Box<dyn UnitWorker>, CommandError> {
        self.check()?;
        crate::compute_here();
        // It lives as long as the process.
        let engine = match self.subject() {
            Subject::Passes(()) => self.engine.start_one_for_passes()?,
            _ => self.engine.start_one()?,
        };
        let engine: &'static dyn Engine = Box::leak(engine);
        Ok(Box::new(BenchWorker::new(self.bench(engine, self.subject()))?))
    }

    /// The samples asked for, with the graphs asked for.
    fn samples(&self) -> Result<Vec<Sample>, CommandError> {
        let mut samples = read_samples(&with_list(&self.samples, self.list.as_deref())?)?;
        let Some(filter) = &self.filter else { return Ok(samples) };
        for sample in &mut samples {
            let name = sample.name.clone();
            sample.graphs.retain(|graph| format!("{name}/{graph}").contains(filter.as_str()));
        }
        samples.retain(|sample| !sample.graphs.is_empty());
        match samples.is_empty() {
            false => Ok(samples),
            true => Err(CommandError::input(format!("no graph has `{filter}` in its name"))
                .with_hint("names look like `swiglu/graphs/float32_1x128x4096`")),
        }
    }
}

pub fn run(mut args: BenchArgs, out: &mut Output) -> Result<Outcome, CommandError> {
    args.check()?;
    if args.self_check {
        return self_check::run(&args, out);
    }
    if args.bundled {
        args.samples.push(embedded::material("tasks")?);
        args.passes = Some(embedded::material("passes")?);
    }
    let parameters = Parameters::checked(args.b, args.p).map_err(CommandError::input)?;
    let mut samples = args.samples()?;
    interrupt::finish_first(match args.out {
        Some(_) => "the same command goes on where it stopped",
        None => "nothing was kept; with `--out DIR` the same command would go on",
    });
    let mut folders = pass_folders(&args, &samples)?;
    let labels = sample_labels(&samples);
    let units = || shard::tasks(&samples, &labels);
    let part = Part::begin(args.shard, args.out.as_deref(), "bench", [], units)?;
    if let Some(part) = &part {
        let mut held = labels.iter().map(|label| part.holds(label));
        folders.retain(|_| held.next() == Some(true));
        let mut held = labels.iter().map(|label| part.holds(label));
        samples.retain(|_| held.next() == Some(true));
    }
    if args.cluster.is_asked() {
        let tasks = samples.into_iter().zip(labels).collect();
        return on_cluster(&args, tasks, folders, parameters, out);
    }
    let engines = match args.subject() {
        Subject::Passes(()) => args.engine.start_for_passes()?,
        _ => args.engine.start()?,
    };
    let mut benches: Vec<Bench<'_>> =
        engines.iter().map(|engine| args.bench(&**engine, args.subject())).collect();
    let mut store = match &args.out {
        Some(folder) => Some(RunStore::open(folder)?),
        None => None,
    };
    if let (Some(store), true) = (&mut store, args.retry_failed) {
        store.forget_failures();
    }
    let noise_floor = Bench::measure_noise_of_all(&mut benches, &samples);
    let work: Vec<(&Sample, &Path)> =
        samples.iter().zip(&folders).map(|(sample, folder)| (sample, &**folder)).collect();
    let judged = judge(&benches, &work, store)?;
    if let Some(part) = part.filter(|_| judged.not_judged.is_empty()) {
        part.finish()?;
    }
    let against = match &args.against[..] {
        [] => Vec::new(),
        _ => against::measure(&args, &benches, &work, &judged)?,
    };
    let identity = benches[0].engine.identity();
    let shown = show::Shown {
        run: args.out.as_deref(),
        identity: &identity,
        noise_floor,
        parameters,
        judged: &judged,
        against: &against,
        cluster: None,
    };
    present(&args, &shown, out)
}

/// Judges on the nodes of a cluster.
fn on_cluster(
    args: &BenchArgs,
    tasks: Vec<(Sample, String)>,
    passes: Vec<PathBuf>,
    parameters: Parameters,
    out: &mut Output,
) -> Result<Outcome, CommandError> {
    let folder = cluster::folder_of(args.out.as_deref())?;
    let found = cluster::work(cluster::Asked {
        command: "bench",
        cluster: &args.cluster,
        kind: Kind::timed(&args.engine.choice()),
        folder,
        run: Some(folder),
        tasks,
        whole: Vec::new(),
        passes,
        solved: None,
        settings: args.settings(),
        retry_failed: args.retry_failed,
        is_json: out.is_json(),
    })?;
    let shown = show::Shown {
        run: Some(folder),
        identity: &found.start.as_ref().map(Start::origin).unwrap_or_default(),
        noise_floor: found.start.as_ref().map_or(0.0, |start| start.options.noise_floor),
        parameters,
        judged: &found.judged,
        against: &[],
        cluster: Some(&found.status),
    };
    present(args, &shown, out)
}

/// Shows what was found, and says how the command ends.
fn present(
    args: &BenchArgs,
    shown: &show::Shown<'_>,
    out: &mut Output,
) -> Result<Outcome, CommandError> {
    let written = args.ci.write(shown)?;
    let missed = args.ci.missed(shown);
    if out.is_json() {
        shown.json(out)?;
    } else {
        shown.print(out)?;
        shown.print_end(&written, missed, out)?;
        if args.out.is_none() {
            warn("note: nothing was kept; `--out DIR` keeps results for `passnet report`");
        }
    }
    out.flush()?;
    Ok(match outcome(shown.judged) {
        Outcome::Done => Outcome::failed_if(missed.is_some()),
        other => other,
    })
}

/// Judges all samples and keeps what is found.
fn judge(
    benches: &[Bench<'_>],
    work: &[(&Sample, &Path)],
    mut store: Option<RunStore>,
) -> Result<Judged, CommandError> {
    if let Some(store) = &mut store {
        store.append(&benches[0].start())?;
    }
    let store = store.map(Mutex::new);
    let bar = Bar::new();
    let total = work.iter().map(|(sample, _)| sample.graphs.len() as u64).sum();
    let task = Task::begin(&bar, "evaluating graphs", Some(total));
    let found = Bench::samples(benches, work, store.as_ref(), &|_| bar.advance(1))?;
    drop(task);
    let mut judged = Judged::default();
    let samples: Vec<Sample> = work.iter().map(|(sample, _)| (*sample).clone()).collect();
    for (found, label) in found.into_iter().zip(sample_labels(&samples)) {
        judged.extend(found.named(&label));
    }
    // A run with graphs that are not judged has not come to its end.
    if let Some(store) = store.filter(|_| judged.not_judged.is_empty()) {
        let mut store = store.into_inner().unwrap_or_else(PoisonError::into_inner);
        store.append(&Event::End { graphs: judged.events.len() })?;
    }
    Ok(judged)
}

/// How a command that judged graphs ends.
pub(crate) fn outcome(judged: &Judged) -> Outcome {
    let wrong = judged
        .events
        .iter()
        .any(|event| event.evaluation.judged.verdict.kind != VerdictKind::Correct);
    match judged.not_judged.is_empty() {
        true => Outcome::failed_if(wrong),
        false if stop::is_asked() => Outcome::Interrupted,
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
    let shown =
        show::Shown { run, identity, noise_floor, parameters, judged, against: &[], cluster: None };
    if out.is_json() {
        return shown.json(out);
    }
    shown.print(out)?;
    shown.print_end(&[], None, out)
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
    let Some(given) = args.passes.as_deref().filter(|_| args.compiler.has_passes()) else {
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
pub(crate) const MANIFEST: &str = "sorted_output_pass_rule_names.json";

/// The passes for a sample: the folder given, a folder of the sample's label or name in it, or the sample's own.
fn pass_folder(given: Option<&Path>, sample: &Sample, label: &str) -> PathBuf {
    match given {
        None => sample.pass_folder(),
        Some(given) if given.join(MANIFEST).is_file() => given.to_path_buf(),
        Some(given) if given.join(label).is_dir() => given.join(label),
        Some(given) => given.join(&sample.name),
    }
}
