//! What a person could do next with these results.

use passnet_bench::bench::Judged;
use passnet_bench::run::GraphEvent;
use passnet_bench::stats::Decision;
use passnet_bench::verdict::VerdictKind;
use std::path::{Path, PathBuf};

/// Commands, each with what it is for; the most urgent first.
pub(super) fn steps(judged: &Judged, run: Option<&Path>) -> Vec<(String, &'static str)> {
    let mut steps = Vec::new();
    let first = |is: &dyn Fn(VerdictKind) -> bool| {
        judged.events.iter().find(|event| is(event.evaluation.judged.verdict.kind)).map(folder)
    };
    use VerdictKind::{Accuracy, CompileFail, NoMatch, RuntimeFail, Unstable};
    if let Some(graph) = first(&|kind| kind == NoMatch) {
        let command = format!("passnet pass explain PASSES --in {}", graph.display());
        steps.push((command, "why a pattern does not match"));
    }
    if let Some(graph) = first(&|kind| matches!(kind, CompileFail | RuntimeFail | Unstable)) {
        let command = format!("passnet kernel check PASSES --graph {}", graph.display());
        steps.push((command, "what a kernel does wrong"));
    }
    if let Some(graph) = first(&|kind| kind == Accuracy) {
        let command = format!("passnet pass apply PASSES --in {}", graph.display());
        steps.push((command, "the rewritten graph, to be held against the original"));
    }
    let slow = judged.events.iter().find(|e| e.evaluation.decision == Some(Decision::Slower));
    if let Some(graph) = slow.map(folder) {
        let command = format!("passnet graph show {} --profile", graph.display());
        steps.push((command, "where eager's time goes"));
    }
    if let Some(run) = run {
        let command = format!("passnet report {} --html report.html", run.display());
        steps.push((command, "everything on one page"));
    }
    steps
}

/// The folder of a graph, shorter where it lies below the one we are in.
fn folder(event: &GraphEvent) -> PathBuf {
    let sample = Path::new(&event.folder);
    let graph = sample.join(&event.evaluation.judged.graph);
    // A graph that was named itself is its own sample.
    let graph = if graph.is_dir() { graph } else { sample.to_path_buf() };
    let here = std::env::current_dir().and_then(|here| here.canonicalize()).ok();
    let below = here.and_then(|here| graph.strip_prefix(here).ok().map(Path::to_path_buf));
    below.filter(|below| !below.as_os_str().is_empty()).unwrap_or(graph)
}
