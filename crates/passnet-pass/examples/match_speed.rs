//! How fast passes are matched, against torch.fx on the same work in the same run.
//!
//! ```text
//! match_speed PYTHON --passes bench/passes --in GRAPHS [--graphs 10000]
//! match_speed PYTHON --cases CASES.jsonl
//! ```
//!
//! The first form matches every pass of a tree of pass folders against the graph folders below GRAPHS; the second
//! one the first patterns of a file made by `python -m passnet.parity.fx_matches generate|cut` against all its graphs.
//! PYTHON must have PyTorch.
//!
//! Both sides are given patterns that are ready and graphs that are parsed: `fx.Graph` there, [`Graph`] here. Timed
//! there is `SubgraphMatcher.match` alone, with Python's garbage collector off; torch.fx keeps users, order and a table
//! of nodes by target in its graph. Timed here are two ways. `kept`: every graph has its set of operations, as a corpus
//! in memory would; its index, users, effects and laid out arguments are worked out inside the timed region by the first
//! pass that needs them and kept for the next ones. `cold`: all of it is made anew for every pass and every graph. Both
//! sides use one thread and report its CPU time, the best of several rounds, so that a busy machine favours neither.
#![allow(clippy::print_stdout, reason = "a benchmark prints its figures")]

use passnet_graph::Graph;
use passnet_graph::read::read_model;
use passnet_graph::syntax::Source;
use passnet_pass::load::{Bindings, LoadOptions, PassFile, Program, load};
use passnet_pass::matcher::reference::{self, ReferencePattern};
use passnet_pass::matcher::{self, MatchOptions, Pattern, TargetGraph};
use passnet_pass::trace::{Dialect, trace};
use serde_json::{Value, json};
use std::error::Error;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Rounds of which the best counts.
const ROUNDS: usize = 3;
/// Patterns taken from a file of cases.
const PATTERNS: usize = 20;
const USAGE: &str =
    "usage: match_speed PYTHON (--passes DIR --in GRAPHS [--graphs N] | --cases FILE)";

type Fallible<T> = Result<T, Box<dyn Error>>;

/// A pattern in both dialects.
struct Traced {
    name: String,
    plain: Graph,
    fx: Graph,
}

#[derive(Default)]
struct Work {
    patterns: Vec<Traced>,
    graphs: Vec<Graph>,
    /// The same for Python: what to build patterns and graphs from.
    request: Value,
}

/// Seconds and matches of one pass over all graphs.
#[derive(Clone, Copy)]
struct Cost {
    seconds: f64,
    matches: usize,
}

fn main() -> Fallible<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let option =
        |name: &str| args.iter().position(|arg| arg == name).and_then(|index| args.get(index + 1));
    let python = args.first().ok_or(USAGE)?;
    let mut work = match (option("--passes"), option("--in"), option("--cases")) {
        (Some(passes), Some(graphs), None) => {
            let most = option("--graphs").map_or(Ok(10_000), |text| text.parse())?;
            from_folders(Path::new(passes), Path::new(graphs), most)?
        }
        (None, None, Some(cases)) => from_cases(Path::new(cases))?,
        _ => return Err(USAGE.into()),
    };
    let theirs = ask_torch(python, &work.request)?;
    // What torch.fx cannot build is nobody's work.
    let skipped = theirs["skipped"].as_array().cloned().unwrap_or_default();
    let skipped: Vec<u64> = skipped.iter().filter_map(Value::as_u64).collect();
    let mut index = 0;
    work.graphs.retain(|_| {
        index += 1;
        !skipped.contains(&(index - 1))
    });
    report(&work, &theirs)
}

fn report(work: &Work, theirs: &Value) -> Fallible<()> {
    let count = work.graphs.len();
    let operations: usize = work.graphs.iter().map(Graph::op_count).sum();
    let torch = theirs["patterns"].as_array().into_iter().flatten().map(|answer| {
        let seconds = answer["seconds"].as_f64().ok_or("no seconds")?;
        Ok(Cost { seconds, matches: answer["matches"].as_u64().ok_or("no matches")? as usize })
    });
    let torch: Vec<Cost> = torch.collect::<Fallible<_>>()?;
    let options = MatchOptions::default();
    let plain: Vec<_> = work.patterns.iter().map(|p| Pattern::new(&p.plain)).collect();
    let fx: Vec<_> = work.patterns.iter().map(|p| ReferencePattern::new(&p.fx)).collect();
    let by_default = |index: usize, target: &TargetGraph<'_>| {
        matcher::matches(&plain[index], target, &options).len()
    };
    let by_reference = |index: usize, target: &TargetGraph<'_>| {
        reference::matches(&fx[index], target).map_or(0, |found| found.len())
    };
    let sides = [
        ("reference", MatcherTimes::measure(work, &by_reference)),
        ("default", MatcherTimes::measure(work, &by_default)),
    ];

    println!(
        "{} passes, {count} graphs of {:.1} operations; CPU milliseconds for one pass on all graphs, index kept",
        work.patterns.len(),
        operations as f64 / count.max(1) as f64
    );
    println!(
        "{:26} {:>9} {:>7} | {:>9} {:>6} {:>7} | {:>9} {:>6} {:>7}",
        "", "torch.fx", "matches", "reference", "ratio", "matches", "default", "ratio", "matches"
    );
    for (index, (pattern, torch)) in work.patterns.iter().zip(&torch).enumerate() {
        print!("{:26} {:>9.1} {:>7}", pattern.name, torch.seconds * 1e3, torch.matches);
        for (_, side) in &sides {
            let Cost { seconds, matches } = side.kept[index];
            print!(" | {:>9.3} {:>5.0}x {matches:>7}", seconds * 1e3, torch.seconds / seconds);
        }
        println!();
    }
    let torch_total: f64 = torch.iter().map(|cost| cost.seconds).sum();
    for (name, side) in &sides {
        println!("{name} semantics");
        for (how, costs) in [("kept", &side.kept), ("cold", &side.cold)] {
            let ratios = torch.iter().zip(costs).map(|(torch, own)| torch.seconds / own.seconds);
            let ratios: Vec<(f64, &Traced)> = ratios.zip(&work.patterns).collect();
            let mean =
                ratios.iter().map(|(ratio, _)| ratio.ln()).sum::<f64>() / ratios.len() as f64;
            let worst = ratios.iter().min_by(|a, b| a.0.total_cmp(&b.0)).ok_or("no pass")?;
            let own = costs.iter().map(|cost| cost.seconds).sum::<f64>();
            let index = if how == "kept" { side.index } else { 0.0 };
            println!(
                "  {how}: {:.0}x torch.fx in geometric mean, least {:.0}x ({}); all passes together {:.0}x, the index included",
                mean.exp(),
                worst.0,
                worst.1.name,
                torch_total / (own + index),
            );
        }
        let slowest = side.cold.iter().map(|cost| cost.seconds).fold(0.0, f64::max);
        println!(
            "  slowest pass, cold: {:.1} ms; index: {:.1} ms",
            slowest * 1e3,
            side.index * 1e3
        );
    }
    let differ = torch.iter().zip(&sides[0].1.kept).zip(&work.patterns);
    let differ = differ.filter(|((torch, own), _)| torch.matches != own.matches);
    let differ: Vec<&str> = differ.map(|(_, pattern)| pattern.name.as_str()).collect();
    match differ.is_empty() {
        true => println!("reference semantics finds as many matches as torch.fx, for every pass"),
        false => println!("DIFFERENT NUMBERS OF MATCHES: {}", differ.join(", ")),
    }
    Ok(())
}

/// What one semantics costs, for every pass.
struct MatcherTimes {
    /// Making the index of all graphs.
    index: f64,
    /// The index is there, and what the passes before worked out about a graph.
    kept: Vec<Cost>,
    /// Everything is worked out anew.
    cold: Vec<Cost>,
}

impl MatcherTimes {
    fn measure(work: &Work, search: &dyn Fn(usize, &TargetGraph<'_>) -> usize) -> Self {
        let none = Cost { seconds: f64::INFINITY, matches: 0 };
        let count = work.patterns.len();
        let mut side =
            MatcherTimes { index: f64::INFINITY, kept: vec![none; count], cold: vec![none; count] };
        for _ in 0..ROUNDS {
            let started = cpu_seconds();
            let targets: Vec<_> = work.graphs.iter().map(TargetGraph::new).collect();
            side.index = side.index.min(cpu_seconds() - started);
            for (pass, best) in side.kept.iter_mut().enumerate() {
                best.improve(|| targets.iter().map(|target| search(pass, target)).sum());
            }
            for (pass, best) in side.cold.iter_mut().enumerate() {
                let found = |graph| search(pass, &TargetGraph::new(graph));
                best.improve(|| work.graphs.iter().map(found).sum());
            }
        }
        side
    }
}

impl Cost {
    /// Keeps the better time.
    fn improve(&mut self, run: impl FnOnce() -> usize) {
        let started = cpu_seconds();
        self.matches = run();
        self.seconds = self.seconds.min(cpu_seconds() - started);
    }
}

/// CPU time of this process so far: what Python's `time.process_time` gives.
fn cpu_seconds() -> f64 {
    #[repr(C)]
    struct Timespec {
        seconds: i64,
        nanoseconds: i64,
    }
    unsafe extern "C" {
        fn clock_gettime(clock: i32, time: *mut Timespec) -> i32;
    }
    const CLOCK_PROCESS_CPUTIME_ID: i32 = 2;
    let mut now = Timespec { seconds: 0, nanoseconds: 0 };
    // SAFETY: the C library, which the standard library links, writes one `timespec` of two 64-bit fields (as on every
    // 64-bit Linux, where this benchmark is run) into the place it is given.
    unsafe { clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &raw mut now) };
    now.seconds as f64 + now.nanoseconds as f64 * 1e-9
}

fn ask_torch(python: &str, request: &Value) -> Fallible<Value> {
    let mut child = Command::new(python)
        .args(["-W", "ignore", "-m", "passnet.parity.fx_matches", "time", "--rounds"])
        .arg(ROUNDS.to_string())
        .env("PYTHONPATH", concat!(env!("CARGO_MANIFEST_DIR"), "/../../python"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    child.stdin.take().ok_or("no pipe")?.write_all(request.to_string().as_bytes())?;
    let output = child.wait_with_output()?;
    Ok(serde_json::from_slice(&output.stdout)?)
}

fn from_folders(passes: &Path, graphs: &Path, most: usize) -> Fallible<Work> {
    let mut work = Work::default();
    let mut files = Vec::new();
    for folder in below(passes, "sorted_output_pass_rule_names.json")? {
        let set = load(&folder, &LoadOptions::default());
        for file in &set.passes {
            work.patterns.push(traced(&set.program, file)?);
            files.push(set.program.module(file.module).source.path().to_string());
        }
    }
    let folders = below(graphs, "model.py")?;
    // Evenly over the tree, which is sorted by model.
    let kept = folders.len().min(most);
    let mut models = Vec::new();
    for index in 0..kept {
        let path = folders[index * folders.len() / kept].join("model.py");
        let Ok(graph) = read_model(&Source::read(&path)?) else { continue };
        work.graphs.push(graph);
        models.push(path.display().to_string());
    }
    work.request = json!({ "passes": files, "models": models });
    Ok(work)
}

fn from_cases(path: &Path) -> Fallible<Work> {
    let lines = std::fs::read_to_string(path)?;
    let cases: Vec<Value> = lines.lines().map(serde_json::from_str).collect::<Result<_, _>>()?;
    let mut work =
        Work { request: json!({ "cases": cases, "patterns": PATTERNS }), ..Work::default() };
    for (index, case) in cases.iter().enumerate() {
        let text = |key: &str| case[key].as_str().unwrap_or_default();
        let model = format!(
            "import torch\nclass GraphModule(torch.nn.Module):\n    def forward(self, {}):\n{}",
            text("inputs"),
            indent(text("graph"), 8)
        );
        work.graphs.push(read_model(&Source::new("model.py", model))?);
        if index < PATTERNS {
            let parameters = text("parameters");
            let pass = format!(
                "import operator\nimport torch\nimport torch.nn.functional as F\n\
                 def pattern({parameters}):\n{}def replacement_args({parameters}):\n    return ({parameters},)\n\
                 def wrapper(*args):\n    return None\ndef replacement_func():\n    return wrapper\n",
                indent(text("pattern"), 4)
            );
            let program = Program::from_source(Source::new(format!("case_{index}.py"), pass))?;
            let module = program.ids().next().ok_or("an empty program")?;
            let file = PassFile { name: format!("case {index}"), module, is_input: false };
            work.patterns.push(traced(&program, &file)?);
        }
    }
    Ok(work)
}

fn traced(program: &Program, file: &PassFile) -> Fallible<Traced> {
    let bindings = Bindings::of(program);
    let graph = |dialect| -> Fallible<Graph> {
        match trace(program, &bindings, file, dialect) {
            Ok(pass) => Ok(pass.pattern.graph),
            Err(errors) => Err(errors.first().map(ToString::to_string).unwrap_or_default().into()),
        }
    };
    let fx = reference::normalise(&graph(Dialect::Fx)?);
    Ok(Traced { name: file.name.clone(), plain: graph(Dialect::Plain)?, fx })
}

fn indent(body: &str, spaces: usize) -> String {
    body.lines().map(|line| format!("{}{line}\n", " ".repeat(spaces))).collect()
}

/// Every folder below a root that holds a file of this name, sorted.
fn below(root: &Path, name: &str) -> Fallible<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut todo = vec![root.to_path_buf()];
    while let Some(folder) = todo.pop() {
        if folder.join(name).is_file() {
            found.push(folder.clone());
        }
        for entry in std::fs::read_dir(&folder)? {
            let path = entry?.path();
            if path.is_dir() {
                todo.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}
