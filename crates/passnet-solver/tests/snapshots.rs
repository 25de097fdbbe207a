//! A small graph in, the generated pass out. `UPDATE=1 cargo test` rewrites what is expected.
//!
//! A fixture is a text: `for a gpu` where passes are wanted for one, `input` lines, `graph` between graphs of one task,
//! statements, and after `====` the passes.

mod common;

use common::{GraphText, Task, written};
use passnet_bench::verdict::VerdictKind;
use passnet_solver::solve::SolveOptions;
use std::path::Path;

#[test]
fn generated_passes_are_as_recorded_and_right() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    let mut paths: Vec<_> = std::fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "txt"))
        .collect();
    paths.sort();
    assert!(paths.len() >= 8, "the fixtures are gone");
    let mut differing = Vec::new();
    for path in paths {
        let text = std::fs::read_to_string(&path).unwrap();
        let (source, expected) = text.split_once("====\n").unwrap_or((&text, ""));
        let (for_gpu, graphs) = match source.strip_prefix("for a gpu\n") {
            Some(rest) => (true, rest),
            None => (false, source),
        };
        let graphs: Vec<GraphText<'_>> = graphs.split("graph\n").map(graph).collect();
        let task = Task::new(&graphs);
        let solved = match for_gpu {
            true => task.solve_with(&SolveOptions { tune: false, for_gpu, ..Default::default() }),
            false => task.solve(),
        };
        solved.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        for evaluation in task.evaluate() {
            let verdict = &evaluation.judged.verdict;
            assert_eq!(verdict.kind, VerdictKind::Correct, "{}: {verdict}", path.display());
        }
        let found = written(&task.passes());
        if std::env::var_os("UPDATE").is_some() {
            std::fs::write(&path, format!("{}\n====\n{found}", source.trim_end())).unwrap();
        } else if found != expected {
            differing.push(format!("{}:\n{found}", path.display()));
        }
    }
    assert!(differing.is_empty(), "generated passes changed:\n{}", differing.join("\n"));
}

fn graph(text: &str) -> GraphText<'_> {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let (inputs, body) = lines.partition::<Vec<&str>, _>(|line| line.starts_with("input "));
    GraphText { inputs: inputs.iter().map(|line| &line["input ".len()..]).collect(), body }
}
