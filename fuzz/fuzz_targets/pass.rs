//! Any bytes as the files of a pass folder: loading, the rules, tracing, matching, rewriting and explaining never
//! panic, and what they say fits together.
//!
//! A line `#### NAME` starts another file of the folder; what stands before the first one is `fuse.py`, the only pass
//! if the folder has no list of its own. Seeds: `crates/passnet-pass/tests/passes` and `bench/passes`.
#![no_main]

use libfuzzer_sys::fuzz_target;
use passnet_graph::Graph;
use passnet_graph::read::read_model;
use passnet_graph::syntax::Source;
use passnet_pass::explain::{NamedGraph, brief, explain, render};
use passnet_pass::load::{Bindings, LoadOptions, Program, load};
use passnet_pass::matcher::{MatchOptions, Pattern, TargetGraph, find, find_first, reference};
use passnet_pass::rewrite::{RunOptions, restore, run};
use passnet_pass::rules::check;
use passnet_pass::trace::{Dialect, Pass, trace};
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

/// Work for one pattern and one graph: the aim is many small runs.
const STEPS: usize = 20_000;
const MANIFEST: &str = "sorted_output_pass_rule_names.json";

macro_rules! graphs {
    ($($name:literal),*) => {
        [$(($name, include_str!(concat!("../../crates/passnet-pass/tests/graphs/", $name, "/model.py")))),*]
    };
}

/// Chains, several outputs, updates in place, randomness, views.
static GRAPHS: LazyLock<Vec<(Source, Graph)>> = LazyLock::new(|| {
    let texts = graphs!(
        "add_relu",
        "attention",
        "bottleneck",
        "rms_norm",
        "sin_cos",
        "swiglu",
        "training",
        "twice",
        "updated_view"
    );
    let read = |(name, text): (&str, &str)| {
        let source = Source::new(format!("{name}/model.py"), text);
        let graph = read_model(&source).expect("a fixture");
        (source, graph)
    };
    texts.into_iter().map(read).collect()
});

static FOLDER: LazyLock<PathBuf> =
    LazyLock::new(|| std::env::temp_dir().join(format!("passnet-fuzz-{}", std::process::id())));

fuzz_target!(|bytes: &[u8]| {
    let folder = FOLDER.as_path();
    if write_folder(folder, bytes).is_none() {
        return;
    }
    let set = load(folder, &LoadOptions::default());
    let options = MatchOptions { steps: STEPS, ..MatchOptions::default() };
    for dialect in [Dialect::Plain, Dialect::Fx] {
        let bindings = Bindings::of(&set.program);
        for file in &set.passes {
            let traced = trace(&set.program, &bindings, file, dialect);
            check(&set.program, &bindings, file, traced.as_ref().ok());
            let Ok(pass) = traced else { continue };
            for (source, graph) in GRAPHS.iter() {
                match dialect {
                    Dialect::Plain => {
                        by_meaning(&set.program, &pass, source, graph, &options);
                        let both = MatchOptions { commutative: true, ..options.clone() };
                        by_meaning(&set.program, &pass, source, graph, &both);
                    }
                    Dialect::Fx => by_reference(&pass, graph),
                }
            }
        }
    }
});

/// Writes the files; `None` for names that are not simple, and for folders that cannot be written.
fn write_folder(folder: &Path, bytes: &[u8]) -> Option<()> {
    let _ = std::fs::remove_dir_all(folder);
    std::fs::create_dir_all(folder).ok()?;
    std::fs::write(folder.join(MANIFEST), "[\"fuse\"]").ok()?;
    let mut name = "fuse.py".to_string();
    let mut content: Vec<u8> = Vec::new();
    for line in bytes.split_inclusive(|byte| *byte == b'\n') {
        let Some(next) = line.strip_prefix(b"#### ") else {
            content.extend_from_slice(line);
            continue;
        };
        std::fs::write(folder.join(&name), &content).ok()?;
        content.clear();
        name = String::from_utf8_lossy(next).trim().to_string();
        let simple = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.');
        if name.is_empty() || name.starts_with('.') || name.len() > 64 || !name.chars().all(simple)
        {
            return None;
        }
    }
    std::fs::write(folder.join(&name), &content).ok()
}

fn by_meaning(
    program: &Program,
    pass: &Pass,
    source: &Source,
    graph: &Graph,
    options: &MatchOptions,
) {
    let pattern = Pattern::new(&pass.pattern.graph);
    let target = TargetGraph::new(graph);
    let outcome = find(&pattern, &target, options);
    let first = find_first(&pattern, &target, options);
    assert_eq!(first.as_ref(), outcome.matches.first(), "the first match is not the first of all");
    assert_eq!(outcome.matches.is_empty(), outcome.miss.is_some(), "a miss without a reason");
    no_overlaps(&outcome.matches);
    if let Some(miss) = &outcome.miss {
        assert!(!brief(pass, graph, miss).is_empty());
    }
    let named = NamedGraph { name: source.path(), graph, source: Some(source) };
    let explanation = explain(program, pass, named, options);
    assert_eq!(explanation.matches, outcome.matches.len());
    render(&explanation);
    let options = RunOptions { matching: options.clone(), ..RunOptions::default() };
    let Ok(report) = run(program, std::slice::from_ref(pass), graph, &options) else { return };
    report.graph.verify().expect("a rewritten graph is well formed");
    if let Ok(restored) = restore(&report.graph, pass) {
        restored.verify().expect("a restored graph is well formed");
    }
}

fn by_reference(pass: &Pass, graph: &Graph) {
    if let Ok(matches) = reference::find(&reference::normalise(&pass.pattern.graph), graph) {
        no_overlaps(&matches);
    }
}

fn no_overlaps(matches: &[passnet_pass::matcher::Match]) {
    let mut nodes: Vec<_> = matches.iter().flat_map(|found| &found.nodes).collect();
    let count = nodes.len();
    nodes.sort();
    nodes.dedup();
    assert_eq!(nodes.len(), count, "matches overlap");
}
