//! One snapshot for each fixture pass: what `check`, `match` and `explain` say about it.
//!
//! A fixture's first line names the graph it is about. To look at a change: `cargo insta review`, or set
//! `INSTA_UPDATE=always` and read the diff.

use passnet_graph::Graph;
use passnet_graph::read::read_model;
use passnet_graph::syntax::Source;
use passnet_pass::explain::{NamedGraph, brief, explain, render};
use passnet_pass::load::{Bindings, LoadOptions, load};
use passnet_pass::matcher::{MatchOptions, Pattern, TargetGraph, find, reference};
use passnet_pass::rules::check;
use passnet_pass::trace::{Dialect, trace};
use std::fmt::Write;
use std::path::{Path, PathBuf};

struct Fixture {
    name: String,
    source: Source,
    graph: Graph,
}

fn entries(folder: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(folder);
    let mut paths: Vec<PathBuf> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths
}

fn graphs() -> Vec<Fixture> {
    let read = |path: PathBuf| {
        let name = path.file_name().unwrap().to_str().unwrap().to_string();
        let text = std::fs::read_to_string(path.join("model.py")).unwrap();
        let source = Source::new(format!("{name}/model.py"), text);
        let graph = read_model(&source).unwrap();
        Fixture { name, source, graph }
    };
    entries("graphs").into_iter().map(read).collect()
}

fn describe(path: &Path, graphs: &[Fixture]) -> String {
    let folder = path.parent().unwrap().display().to_string();
    let mut text = String::new();
    let set = load(path, &LoadOptions::default());
    for error in &set.errors {
        writeln!(text, "error: {error}").unwrap();
    }
    let bindings = Bindings::of(&set.program);
    for file in &set.passes {
        let traced = trace(&set.program, &bindings, file, Dialect::Plain);
        if let Err(errors) = &traced {
            errors.iter().for_each(|error| writeln!(text, "error: {error}").unwrap());
        }
        let pass = traced.ok();
        for finding in check(&set.program, &bindings, file, pass.as_ref()) {
            let severity = format!("{:?}", finding.severity).to_lowercase();
            let (rule, line, message) = (finding.rule, finding.line, &finding.message);
            let file = Path::new(&finding.file).file_name().unwrap().to_str().unwrap();
            writeln!(text, "{severity}: {file}:{line}: {message} [{rule}]").unwrap();
        }
        let Some(pass) = pass else { continue };
        pass.warnings.iter().for_each(|warning| writeln!(text, "warning: {warning}").unwrap());
        writeln!(text).unwrap();
        let fx = trace(&set.program, &bindings, file, Dialect::Fx);
        for fixture in graphs {
            let pattern = Pattern::new(&pass.pattern.graph);
            let options = MatchOptions::default();
            let outcome = find(&pattern, &TargetGraph::new(&fixture.graph), &options);
            let by_reference = match &fx {
                Err(_) => "cannot trace".to_string(),
                Ok(fx) => {
                    let normal = reference::normalise(&fx.pattern.graph);
                    match reference::find(&normal, &fixture.graph) {
                        Ok(found) => found.len().to_string(),
                        Err(error) => error.to_string(),
                    }
                }
            };
            if !outcome.matches.is_empty() || by_reference != "0" {
                let (name, count) = (&fixture.name, outcome.matches.len());
                writeln!(text, "match: {name}: {count} (reference: {by_reference})").unwrap();
            }
        }
        let header = set.program.module(file.module).source.line_text(1).to_string();
        let wanted = header.trim_start_matches("# graph:").trim();
        let fixture = graphs.iter().find(|graph| graph.name == wanted).expect("a known graph");
        let named = NamedGraph {
            name: &fixture.name,
            graph: &fixture.graph,
            source: Some(&fixture.source),
        };
        let pattern = Pattern::new(&pass.pattern.graph);
        let outcome = find(&pattern, &TargetGraph::new(&fixture.graph), &MatchOptions::default());
        if let Some(miss) = &outcome.miss {
            writeln!(text, "miss: {}", brief(&pass, &fixture.graph, miss)).unwrap();
        }
        let explanation = explain(&set.program, &pass, named, &MatchOptions::default());
        writeln!(text, "\n{}", render(&explanation)).unwrap();
    }
    text.replace(&format!("{folder}/"), "")
}

#[test]
fn every_fixture_pass() {
    let graphs = graphs();
    let mut count = 0;
    for path in entries("passes").into_iter().filter(|p| p.extension().is_some_and(|e| e == "py")) {
        let name = path.file_stem().unwrap().to_str().unwrap().to_string();
        if name == "kernels" {
            continue;
        }
        count += 1;
        insta::assert_snapshot!(name, describe(&path, &graphs));
    }
    assert!(count >= 60, "{count} fixtures");
}
