//! `passnet solve`: write passes without a language model, then evaluate them.

mod show;
mod target;

use super::bench::{outcome, sample_labels};
use super::cluster::unit_worker::{BenchWorker, UnitWorker, solved_passes, task_of};
use super::cluster::{self, ClusterArgs, Found, Kind};
use super::engine::EngineArgs;
use super::shard::{self, Part};
use crate::cache::cache_folder;
use crate::error::{CommandError, Outcome};
use crate::interrupt;
use crate::output::{Output, warn};
use crate::paths::with_list;
use crate::progress::Bar;
use clap::Args;
use passnet_bench::bench::{Bench, Judged};
use passnet_bench::evaluate::EvaluateOptions;
use passnet_bench::pool::in_order;
use passnet_bench::run::{Event, RunStore, Start};
use passnet_bench::sample::{self, Sample};
use passnet_bench::shard::{Shard, Unit};
use passnet_bench::stop;
use passnet_bench::subject::Subject;
use passnet_bench::timing::TimingOptions;
use passnet_engine::{Engine, Identity};
use passnet_solver::explain::{Explanation, Rates};
use passnet_solver::solve::{EXPLANATION, SolveError, SolveOptions, solve};
use passnet_solver::target::Target;
use passnet_work::progress::{Progress, Task};
use serde_json::{Value, json};
use show::show;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

#[derive(Debug, Args)]
#[command(after_help = "\
With --out DIR the passes of a task lie in DIR/passes/TASK with an explain.json that says what was fused and what it
brings, and the results in DIR/run, for `passnet report`. Without, they go into each task's own `pass_dir`.
A task that is solved already, with the same graphs and options in the same place, is not solved again.

Examples:
  passnet solve bench/tasks --out solved
  passnet solve --list tasks.txt --out solved --graphs 3 --quick
  passnet solve bench/tasks --out solved --engine torch --device cuda
  passnet solve bench/tasks/swiglu --no-tune --no-bench --out untuned   write all passes, measure nothing (for another machine)
  passnet solve bench/tasks --no-tune --no-bench --for-gpu --out written   for a GPU, here
  passnet solve bench/tasks --no-tune --no-bench --target h200 --out h200   the same for one GPU by name or file, compiled
  passnet solve bench/tasks --cluster auto --out clustered   on the nodes of a Ray cluster
  passnet report solved/run --html solved.html")]
pub struct SolveArgs {
    /// Sample folders, folders of them, or graph folders
    #[arg(required_unless_present = "list")]
    samples: Vec<PathBuf>,

    /// A list of samples, as text, table (`sample_path`) or tasks (`.jsonl`); paths from its folder, those above, or here
    #[arg(long, value_name = "FILE")]
    list: Option<PathBuf>,

    /// Where passes and results go
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,

    #[command(flatten)]
    engine: EngineArgs,

    /// Write every pass with the usual choices, without measuring
    #[arg(long)]
    no_tune: bool,

    /// Seconds of tuning for one task, about: what is not measured by then has the usual choice
    #[arg(long, default_value_t = 60.0, value_name = "S", value_parser = seconds, conflicts_with = "no_tune")]
    tune_seconds: f64,

    /// Do not evaluate the passes
    #[arg(long)]
    no_bench: bool,

    /// Write for a GPU on a machine without one, so that the GPU's time goes into measuring alone
    #[arg(long, requires_all = ["no_tune", "no_bench"])]
    for_gpu: bool,

    /// As `--for-gpu`, for a GPU that is described by a name (`h200`) or a file: expected speed-ups are those of that
    /// GPU, and where there is Triton, kernels are compiled for it beforehand
    #[arg(long, value_name = "NAME|FILE", requires_all = ["no_tune", "no_bench"], conflicts_with_all = ["cluster", "shard"])]
    target: Option<String>,

    /// Evaluate graphs again whose stored result is a failure
    #[arg(long, requires = "out", conflicts_with = "no_bench")]
    retry_failed: bool,

    /// Evaluate only this many graphs of each task, those with the smallest inputs
    #[arg(long, value_name = "N")]
    graphs: Option<usize>,

    /// Evaluate without extreme inputs and watched kernels
    #[arg(long)]
    quick: bool,

    /// Solve one of N parts (I from 0 to N-1): tasks go to parts by their names; `passnet merge` puts them together
    #[arg(long, value_name = "I/N", requires = "out", conflicts_with = "cluster")]
    shard: Option<Shard>,

    #[command(flatten)]
    cluster: ClusterArgs,

    /// Seconds of timing for one graph in the evaluation, about
    #[arg(long, default_value_t = 0.4, value_name = "S")]
    seconds: f64,
}

/// A length of time from the command line.
fn seconds(text: &str) -> Result<f64, String> {
    let given: f64 = text.parse().map_err(|error| format!("{error}"))?;
    match given.is_finite() && given >= 0.0 {
        true => Ok(given),
        false => Err("not a number of seconds".into()),
    }
}

/// What became of one task.
struct Solved {
    name: String,
    result: Result<Explanation, String>,
    /// Whether the machine failed, and not the solver.
    not_tried: bool,
}

pub fn run(args: SolveArgs, out: &mut Output) -> Result<Outcome, CommandError> {
    let target = args.target()?;
    let samples = read_samples(&args)?;
    let labels = sample_labels(&samples);
    let units = || args.units(&samples, &labels);
    let part = Part::begin(args.shard, args.out.as_deref(), "solve", args.choices(), units)?;
    let is_ours =
        |(_, label): &(Sample, String)| part.as_ref().is_none_or(|part| part.holds(label));
    let (samples, labels): (Vec<Sample>, Vec<String>) =
        samples.into_iter().zip(labels).filter(is_ours).unzip();
    interrupt::finish_first("the same command goes on: what is solved stays solved");
    if args.cluster.is_asked() {
        return on_cluster(&args, samples.into_iter().zip(labels).collect(), out);
    }
    // Nothing runs where passes are only written.
    let engines = match args.no_tune && args.no_bench {
        true => args.engine.start()?,
        false => args.engine.start_for_passes()?,
    };
    let mut benches: Vec<Bench<'_>> = engines.iter().map(|engine| args.bench(&**engine)).collect();
    let mut store = match (&args.out, args.no_bench) {
        (Some(folder), false) => Some(RunStore::open(&folder.join("run"))?),
        _ => None,
    };
    let noise_floor =
        if args.no_bench { 0.0 } else { Bench::measure_noise_of_all(&mut benches, &samples) };
    if let Some(store) = &mut store {
        if args.retry_failed {
            store.forget_failures();
        }
        store.append(&benches[0].start())?;
    }
    let store = store.map(Mutex::new);
    let place = Origin { identity: benches[0].engine.identity(), noise_floor };
    let jobs: Vec<(Sample, String)> = samples.into_iter().zip(labels).collect();
    let (solved, judged) = solve_all(&args, target.as_ref(), benches, &jobs, store.as_ref())?;
    if let Some(target) = &target {
        args.compile(target, &jobs, &solved);
    }
    let lost = solved.iter().any(|solved| solved.not_tried) || !judged.not_judged.is_empty();
    if let Some(store) = store.filter(|_| !lost) {
        let mut store = store.into_inner().unwrap_or_else(PoisonError::into_inner);
        store.append(&Event::End { graphs: judged.events.len() })?;
    }
    if let Some(part) = part.filter(|_| !lost) {
        part.finish()?;
    }
    present(&args, &solved, &judged, &place, out)
}

/// Shows what came of the tasks, and says how the command ends.
fn present(
    args: &SolveArgs,
    solved: &[Solved],
    judged: &Judged,
    place: &Origin,
    out: &mut Output,
) -> Result<Outcome, CommandError> {
    let run = args.out.as_ref().map(|folder| folder.join("run"));
    show(solved, judged, run.as_deref(), place, out)?;
    if args.out.is_none() && !args.no_bench && !out.is_json() {
        warn("note: results were not kept; `--out DIR` keeps them for `passnet report`");
    }
    out.flush()?;
    let unsolved = solved.iter().any(|solved| solved.result.is_err());
    let lost = solved.iter().any(|solved| solved.not_tried) || !judged.not_judged.is_empty();
    match outcome(judged) {
        _ if lost && stop::is_asked() => Ok(Outcome::Interrupted),
        _ if lost => Ok(Outcome::NotJudged),
        Outcome::Done => Ok(Outcome::failed_if(unsolved)),
        other => Ok(other),
    }
}

/// Solves on the nodes of a cluster.
fn on_cluster(
    args: &SolveArgs,
    tasks: Vec<(Sample, String)>,
    out: &mut Output,
) -> Result<Outcome, CommandError> {
    let folder = cluster::folder_of(args.out.as_deref())?;
    let (run, passes) = (folder.join("run"), folder.join("passes"));
    let (whole, labels): (Vec<Sample>, Vec<String>) = tasks.into_iter().unzip();
    let judged = whole.iter().map(|sample| smallest(sample, args.graphs));
    let found = cluster::work(cluster::Asked {
        command: "solve",
        cluster: &args.cluster,
        kind: match args.no_tune && args.no_bench {
            true => Kind::Free,
            false => Kind::timed(&args.engine.choice()),
        },
        folder,
        run: (!args.no_bench).then_some(&*run),
        tasks: judged.zip(labels.iter().cloned()).collect(),
        whole,
        passes: Vec::new(),
        solved: Some(passes.clone()),
        settings: format!("{:?} {} {} {:?}", args.choices(), args.seconds, args.quick, args.graphs),
        retry_failed: args.retry_failed,
        is_json: out.is_json(),
    })?;
    let solved: Vec<Solved> =
        labels.iter().map(|label| solved_of(label, &passes, &found)).collect();
    let place = Origin {
        identity: found.start.as_ref().map(Start::origin).unwrap_or_default(),
        noise_floor: found.start.as_ref().map_or(0.0, |start| start.options.noise_floor),
    };
    present(args, &solved, &found.judged, &place, out)
}

/// What became of a task that workers solved.
fn solved_of(label: &str, passes: &Path, found: &Found) -> Solved {
    let name = label.to_string();
    let failed =
        |error: String, not_tried| Solved { name: name.clone(), result: Err(error), not_tried };
    if let Some(error) = found.words.get(label).and_then(|words| words["error"].as_str()) {
        return failed(error.into(), false);
    }
    match read_explanation(&passes.join(label)) {
        Some(explanation) => Solved { name, result: Ok(explanation), not_tried: false },
        None => failed(found.aside.get(label).map_or(stop::REASON, |reason| reason).into(), true),
    }
}

fn read_explanation(passes: &Path) -> Option<Explanation> {
    serde_json::from_slice(&std::fs::read(passes.join(EXPLANATION)).ok()?).ok()
}

/// Solves tasks for a driver elsewhere.
struct SolveWorker {
    judge: BenchWorker,
    rates: Rates,
    options: SolveOptions,
    is_judged: bool,
    graphs: Option<usize>,
}

impl UnitWorker for SolveWorker {
    fn identity(&self) -> Identity {
        self.judge.identity()
    }

    fn noise(&self) -> Option<f64> {
        self.judge.noise()
    }

    fn perform(&mut self, _: &Value, input: &Path, out: &Path) -> Result<Value, String> {
        let sample = task_of(input)?;
        let folder = solved_passes(out);
        let engine = self.judge.bench.engine;
        let words = match solve(engine, &self.rates, &sample, &folder, &self.options) {
            Ok(_) => Value::Null,
            Err(error @ (SolveError::Io { .. } | SolveError::Machine { .. })) => {
                return Err(error.to_string());
            }
            Err(error) => json!({ "error": error.to_string() }),
        };
        if self.is_judged {
            self.judge.judge(&smallest(&sample, self.graphs), &folder, out)?;
        }
        Ok(words)
    }
}

impl SolveArgs {
    pub(super) fn worker(&self) -> Result<Box<dyn UnitWorker>, CommandError> {
        self.engine.check()?;
        crate::compute_here();
        let is_timed = !(self.no_tune && self.no_bench);
        let engine = match is_timed {
            true => self.engine.start_one_for_passes()?,
            false => self.engine.start_one()?,
        };
        // It lives as long as the process.
        let engine: &'static dyn Engine = Box::leak(engine);
        let judge = match is_timed {
            true => BenchWorker::new(self.bench(engine))?,
            false => BenchWorker { bench: self.bench(engine) },
        };
        Ok(Box::new(SolveWorker {
            rates: Rates::measure(engine),
            judge,
            options: self.options(None),
            is_judged: !self.no_bench,
            graphs: self.graphs,
        }))
    }

    fn options(&self, target: Option<&Target>) -> SolveOptions {
        SolveOptions {
            tune: !self.no_tune,
            tune_seconds: (!self.no_tune).then_some(self.tune_seconds),
            measurements: Some(cache_folder().join("tuning")),
            for_gpu: self.for_gpu || target.is_some(),
            target: target.map(Target::text),
            ..SolveOptions::default()
        }
    }

    /// Where the passes of a task go.
    fn folder(&self, sample: &Sample, label: &str) -> PathBuf {
        match &self.out {
            Some(out) => out.join("passes").join(label),
            None => sample.pass_folder(),
        }
    }

    fn bench<'a>(&self, engine: &'a dyn Engine) -> Bench<'a> {
        let options = EvaluateOptions {
            timing: TimingOptions { seconds: self.seconds, ..TimingOptions::default() },
            thorough: !self.quick,
            tier: self.engine.choice().tier,
            ..EvaluateOptions::default()
        };
        Bench::new(engine, Subject::PASSES, options, true)
    }

    /// What passes depend on and no event says.
    fn choices(&self) -> [(&'static str, String); 4] {
        [
            ("tuning", (!self.no_tune).to_string()),
            ("seconds of tuning", self.tune_seconds.to_string()),
            ("writing for a GPU", self.for_gpu.to_string()),
            ("evaluation", (!self.no_bench).to_string()),
        ]
    }

    /// Tasks with the graphs that are evaluated.
    fn units(&self, samples: &[Sample], labels: &[String]) -> Vec<Unit> {
        let mut units = shard::tasks(samples, labels);
        for (unit, sample) in units.iter_mut().zip(samples) {
            unit.graphs = match self.no_bench {
                true => Vec::new(),
                false => smallest(sample, self.graphs).graphs,
            };
        }
        units
    }
}

/// A device and what it reaches.
struct Solver<'a> {
    bench: Bench<'a>,
    rates: Rates,
}

impl<'a> Solver<'a> {
    fn new(bench: Bench<'a>) -> Self {
        Solver { rates: Rates::measure(bench.engine), bench }
    }
}

/// Solves the tasks one by one on each device, and evaluates what came of them there.
fn solve_all(
    args: &SolveArgs,
    target: Option<&Target>,
    benches: Vec<Bench<'_>>,
    jobs: &[(Sample, String)],
    store: Option<&Mutex<RunStore>>,
) -> Result<(Vec<Solved>, Judged), CommandError> {
    let options = args.options(target);
    let solver = |bench| match target {
        Some(target) => Solver { rates: target.rates(), bench },
        None => Solver::new(bench),
    };
    let solvers: Vec<Solver<'_>> = benches.into_iter().map(solver).collect();
    let bar = Bar::new();
    let task = Task::begin(&bar, "solving tasks", Some(jobs.len() as u64));
    let done = in_order(&solvers, jobs, |Solver { bench, rates }, (sample, label)| {
        if stop::is_asked() {
            let result = Err(stop::REASON.to_string());
            let solved = Solved { name: label.clone(), result, not_tried: true };
            return Ok((solved, Judged::default()));
        }
        let folder = args.folder(sample, label);
        let result = solve(bench.engine, rates, sample, &folder, &options);
        if let Err(SolveError::Io { path, error }) = &result {
            return Err(unwritable(path, error));
        }
        let not_tried = matches!(result, Err(SolveError::Machine { .. }));
        let mut judged = Judged::default();
        if !args.no_bench && !not_tried {
            judged = bench.sample(&smallest(sample, args.graphs), &folder, store)?.named(label);
        }
        bar.advance(1);
        let result = result.map_err(|error| error.to_string());
        Ok((Solved { name: label.clone(), result, not_tried }, judged))
    })?;
    drop(task);
    let mut judged = Judged::default();
    let mut solved = Vec::with_capacity(done.len());
    for (task, found) in done {
        solved.push(task);
        judged.extend(found);
    }
    Ok((solved, judged))
}

/// Where the results come from, and what that machine calls noise.
struct Origin {
    identity: Identity,
    noise_floor: f64,
}

fn unwritable(path: &Path, error: &std::io::Error) -> CommandError {
    use std::io::ErrorKind::{QuotaExceeded, StorageFull};
    let message = format!("{}: {error}", path.display());
    match error.kind() {
        StorageFull | QuotaExceeded => CommandError::full_disk(message),
        _ => CommandError::input(message),
    }
}

fn read_samples(args: &SolveArgs) -> Result<Vec<Sample>, CommandError> {
    let folders = sample::find(&with_list(&args.samples, args.list.as_deref())?)?;
    Ok(folders.iter().map(|folder| Sample::read(folder)).collect::<Result<_, _>>()?)
}

/// The sample with only its graphs of the smallest inputs.
fn smallest(sample: &Sample, count: Option<usize>) -> Sample {
    let Some(count) = count.filter(|count| *count < sample.graphs.len()) else {
        return sample.clone();
    };
    let elements = |graph: &String| -> i64 {
        let folder = sample
            .graph_files(graph)
            .ok()
            .and_then(|files| passnet_graph::read::read_folder(&files).ok());
        folder.map_or(i64::MAX, |folder| folder.metas.iter().map(|meta| meta.elements()).sum())
    };
    let mut graphs = sample.graphs.clone();
    graphs.sort_by_cached_key(elements);
    graphs.truncate(count);
    Sample { graphs, ..sample.clone() }
}
