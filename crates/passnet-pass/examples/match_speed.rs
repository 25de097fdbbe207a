//! How fast passes are matched, against torch.fx on the same work in the same run.
//!
//! ```text
//! match_speed PYTHON --passes bench/passes --in GRAPHS [--graphs 10000]
//! match_speed PYTHON --cases CASES.jsonl
//! ```
//!
//! The first form matches every pass of a tree of pass folders against the graph folders below GRAPHS; the second
//! one the first patterns of a file made by `python -m passnet.fx_parity generate|cut` against all its graphs.
//! PYTHON must have PyTorch.
//!
//! Both sides are given patterns that are ready and graphs that are parsed: `fx.Graph` there, [`Graph`] here. Timed
//! there is `SubgraphMatcher.match` alone, with Python's garbage collector off; timed here is everything from the
//! parsed graph on: its index is made anew for every pass (`cold`), or made once and used by all passes (`kept`, the
//! making included). torch.fx keeps users and order in its graph, so it has no such work. Both sides use one thread and
//! report its CPU time, the best of several rounds, so that a busy machine favours neither.
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
    println!(
        "{} passes, {count} graphs of {:.1} operations; seconds for one pass on all graphs",
        work.patterns.len(),
        operations as f64 / count.max(1) as f64
    );
    println!(
        "{:26} {:>9} {:>7} | {:>9} {:>6} {:>7} | {:>9} {:>6} {:>7}",
        "", "torch.fx", "matches", "reference", "ratio", "matches", "default", "ratio", "matches"
    );
    let options = MatchOptions::default();
    let mut ratios: [Vec<(f64, &str)>; 2] = Default::default();
    let mut differ = Vec::new();
    let mut slowest = 0.0_f64;
    for (pattern, answer) in
        work.patterns.iter().zip(theirs["patterns"].as_array().into_iter().flatten())
    {
        let torch = Cost {
            seconds: answer["seconds"].as_f64().ok_or("no seconds")?,
            matches: answer["matches"].as_u64().ok_or("no matches")? as usize,
        };
        let fx = ReferencePattern::new(&pattern.fx);
        let by_reference = best_of(|| {
            let found = |graph: &Graph| reference::matches(&fx, &TargetGraph::new(graph));
            work.graphs.iter().map(|graph| found(graph).map_or(0, |found| found.len())).sum()
        });
        let plain = Pattern::new(&pattern.plain);
        let by_default = best_of(|| {
            let found =
                |graph: &Graph| matcher::matches(&plain, &TargetGraph::new(graph), &options);
            work.graphs.iter().map(|graph| found(graph).len()).sum()
        });
        println!(
            "{:26} {:>9.4} {:>7} | {:>9.6} {:>5.0}x {:>7} | {:>9.6} {:>5.0}x {:>7}",
            pattern.name,
            torch.seconds,
            torch.matches,
            by_reference.seconds,
            torch.seconds / by_reference.seconds,
            by_reference.matches,
            by_default.seconds,
            torch.seconds / by_default.seconds,
            by_default.matches,
        );
        if torch.matches != by_reference.matches {
            differ.push(pattern.name.as_str());
        }
        slowest = slowest.max(by_default.seconds);
        for (ratios, cost) in ratios.iter_mut().zip([by_reference, by_default]) {
            ratios.push((torch.seconds / cost.seconds, &pattern.name));
        }
    }
    for (ratios, name) in ratios.iter().zip(["reference semantics", "default semantics"]) {
        let mean = ratios.iter().map(|(ratio, _)| ratio.ln()).sum::<f64>() / ratios.len() as f64;
        let worst = ratios.iter().min_by(|a, b| a.0.total_cmp(&b.0)).ok_or("no pass")?;
        println!(
            "{name}, cold: {:.0}x torch.fx in geometric mean, least {:.0}x ({})",
            mean.exp(),
            worst.0,
            worst.1
        );
    }
    kept(work, theirs, &options);
    println!("slowest pass, cold, default semantics: {:.1} ms", slowest * 1e3);
    match differ.is_empty() {
        true => println!("reference semantics finds as many matches as torch.fx, for every pass"),
        false => println!("DIFFERENT NUMBERS OF MATCHES: {}", differ.join(", ")),
    }
    Ok(())
}

/// All passes over graphs whose index is kept from pass to pass.
fn kept(work: &Work, theirs: &Value, options: &MatchOptions) {
    let torch: f64 = theirs["patterns"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|answer| answer["seconds"].as_f64())
        .sum();
    let patterns: Vec<_> = work.patterns.iter().map(|p| Pattern::new(&p.plain)).collect();
    let fx: Vec<_> = work.patterns.iter().map(|p| ReferencePattern::new(&p.fx)).collect();
    let by_default = best_of(|| {
        let targets: Vec<_> = work.graphs.iter().map(TargetGraph::new).collect();
        let on_all = |pattern: &Pattern<'_>| -> usize {
            targets.iter().map(|target| matcher::matches(pattern, target, options).len()).sum()
        };
        patterns.iter().map(on_all).sum()
    });
    let by_reference = best_of(|| {
        let targets: Vec<_> = work.graphs.iter().map(TargetGraph::new).collect();
        let found = |pattern: &ReferencePattern<'_>, target: &TargetGraph<'_>| {
            reference::matches(pattern, target).map_or(0, |found| found.len())
        };
        fx.iter().map(|p| targets.iter().map(|t| found(p, t)).sum::<usize>()).sum()
    });
    for (name, cost) in [("reference semantics", by_reference), ("default semantics", by_default)] {
        let pairs = (work.patterns.len() * work.graphs.len()) as f64;
        println!(
            "{name}, kept: {:.0}x torch.fx on all passes together ({:.3} us a pair, torch.fx {:.1})",
            torch / cost.seconds,
            cost.seconds * 1e6 / pairs,
            torch * 1e6 / pairs
        );
    }
}

fn best_of(mut run: impl FnMut() -> usize) -> Cost {
    let mut best = Cost { seconds: f64::INFINITY, matches: 0 };
    for _ in 0..ROUNDS {
        let started = cpu_seconds();
        let matches = run();
        best = Cost { seconds: best.seconds.min(cpu_seconds() - started), matches };
    }
    best
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
        .args(["-W", "ignore", "-m", "passnet.fx_parity", "time", "--rounds"])
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
