//! How fast patterns are matched, against torch.fx on the same work in the same run.
//!
//! `cargo run --release -p passnet-pass --example match_speed -- CASES.jsonl [PYTHON]`, where the cases come from
//! `python -m passnet.fx_parity generate|cut` and PYTHON has PyTorch. One core is used on both sides.
#![allow(clippy::print_stdout, reason = "a benchmark prints its figures")]

use passnet_graph::Graph;
use passnet_graph::read::read_model;
use passnet_graph::syntax::Source;
use passnet_pass::load::{Bindings, PassFile, Program};
use passnet_pass::matcher::{self, MatchOptions, Pattern, TargetGraph, reference};
use passnet_pass::trace::{Dialect, trace};
use serde_json::Value;
use std::error::Error;
use std::process::Command;
use std::time::Instant;

/// Patterns that are timed; each is matched against every graph.
const PATTERNS: usize = 20;
/// Graphs that one pass is matched against in the last measurement.
const CORPUS: usize = 10_000;

fn indent(body: &str, spaces: usize) -> String {
    body.lines().map(|line| format!("{}{line}\n", " ".repeat(spaces))).collect()
}

fn read_graph(case: &Value) -> Result<Graph, Box<dyn Error>> {
    let text = |key: &str| case[key].as_str().unwrap_or_default();
    let model = format!(
        "import torch\nclass GraphModule(torch.nn.Module):\n    def forward(self, {}):\n{}",
        text("inputs"),
        indent(text("graph"), 8)
    );
    Ok(read_model(&Source::new("model.py", model))?)
}

fn read_pattern(case: &Value, dialect: Dialect) -> Result<Graph, Box<dyn Error>> {
    let text = |key: &str| case[key].as_str().unwrap_or_default();
    let parameters = text("parameters");
    let pass = format!(
        "import operator\nimport torch\nimport torch.nn.functional as F\n\
         def pattern({parameters}):\n{}def replacement_args({parameters}):\n    return ({parameters},)\n\
         def wrapper(*args):\n    return None\ndef replacement_func():\n    return wrapper\n",
        indent(text("pattern"), 4)
    );
    let program = Program::from_source(Source::new("pass.py", pass))?;
    let bindings = Bindings::of(&program);
    let module = program.ids().next().ok_or("an empty program")?;
    let file = PassFile { name: "pass".into(), module, is_input: false };
    let traced = trace(&program, &bindings, &file, dialect);
    let pass =
        traced.map_err(|errors| errors.first().map(ToString::to_string).unwrap_or_default())?;
    Ok(pass.pattern.graph)
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let path = args.next().ok_or("usage: match_speed CASES.jsonl [PYTHON]")?;
    let cases: Vec<Value> = std::fs::read_to_string(&path)?
        .lines()
        .map(serde_json::from_str)
        .collect::<Result<_, _>>()?;
    let graphs: Vec<Graph> = cases.iter().map(read_graph).collect::<Result<_, _>>()?;
    let first = &cases[..cases.len().min(PATTERNS)];
    let plain: Vec<Graph> =
        first.iter().map(|case| read_pattern(case, Dialect::Plain)).collect::<Result<_, _>>()?;
    let fx: Vec<Graph> = first
        .iter()
        .map(|case| Ok(reference::normalise(&read_pattern(case, Dialect::Fx)?)))
        .collect::<Result<_, Box<dyn Error>>>()?;
    let pairs = plain.len() * graphs.len();
    let nodes: usize = graphs.iter().map(Graph::op_count).sum();
    println!("{pairs} pairs, {:.1} operations a graph", nodes as f64 / graphs.len() as f64);

    // Both sides start from graphs that are ready to be searched: torch.fx keeps users and order in its graph,
    // here they are worked out by this first pass over the corpus, which is timed too.
    let options = MatchOptions::default();
    let started = Instant::now();
    let targets: Vec<TargetGraph<'_>> = graphs.iter().map(TargetGraph::new).collect();
    let index = started.elapsed().as_secs_f64();
    println!("index                {:8.3} us a graph", index * 1e6 / graphs.len() as f64);
    let started = Instant::now();
    let mut matches = 0;
    for pattern in &plain {
        let pattern = Pattern::new(pattern);
        for target in &targets {
            matches += matcher::matches(&pattern, target, &options).len();
        }
    }
    let ours = started.elapsed().as_secs_f64();
    println!("default semantics    {:8.3} us a pair, {matches} matches", ours * 1e6 / pairs as f64);

    let started = Instant::now();
    let mut found = 0;
    for pattern in &fx {
        for graph in &graphs {
            found += reference::find(pattern, graph).map_or(0, |matches| matches.len());
        }
    }
    let imitation = started.elapsed().as_secs_f64();
    println!(
        "reference semantics  {:8.3} us a pair, {found} matches",
        imitation * 1e6 / pairs as f64
    );

    let mut slowest = 0.0_f64;
    for pattern in &plain {
        let pattern = Pattern::new(pattern);
        let started = Instant::now();
        for graph in graphs.iter().cycle().take(CORPUS) {
            matcher::matches(&pattern, &TargetGraph::new(graph), &options);
        }
        slowest = slowest.max(started.elapsed().as_secs_f64());
    }
    println!("one pass on {CORPUS} graphs, index included: at most {:.1} ms", slowest * 1e3);

    if let Some(python) = args.next() {
        let output = Command::new(python)
            .args(["-W", "ignore", "-m", "passnet.fx_parity", "time", "--patterns"])
            .arg(plain.len().to_string())
            .arg(&path)
            .env("PYTHONPATH", concat!(env!("CARGO_MANIFEST_DIR"), "/../../python"))
            .output()?;
        let torch: f64 = String::from_utf8_lossy(&output.stdout)
            .trim()
            .parse()
            .map_err(|_| String::from_utf8_lossy(&output.stderr).into_owned())?;
        println!("torch.fx             {:8.3} us a pair", torch * 1e6 / pairs as f64);
        println!(
            "default semantics is {:.0}x torch.fx, reference semantics {:.0}x",
            torch / ours,
            torch / imitation
        );
    }
    Ok(())
}
