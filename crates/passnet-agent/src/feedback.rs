//! What a model is told about its passes: short, the same for four variants and for four hundred.
//!
//! Few graphs are listed one by one. Many are put together by verdict and reason, with one example each. Text that comes
//! from files passes through [`printable`], so it stays on its line.

use crate::evaluator::{Assessment, GraphAssessment, Question};
use crate::task::Task;
use passnet_bench::report::{printable, ratio_text};
use passnet_bench::stats::Decision;
use passnet_bench::verdict::VerdictKind;
use std::collections::BTreeMap;
use std::fmt::Write;

/// Up to so many graphs are shown one by one.
const LISTED: usize = 8;
/// Groups of equal failures.
const GROUPS: usize = 6;
/// Pieces of advice.
const ADVICE: usize = 4;
/// Characters of one piece of evidence.
const EVIDENCE: usize = 300;
/// Characters of the whole answer.
const MAX_CHARS: usize = 4000;
/// Within this factor of the hardware floor there is nothing left to gain.
const NEAR_FLOOR: f64 = 1.3;

/// The answer to a question about the passes. `best` is the best score before it.
pub fn feedback(task: &Task, found: &Assessment, best: Option<f64>) -> String {
    let mut out = String::new();
    if let Some(score) = found.score {
        let standing = match best {
            _ if !found.earns() => "no pass changed a graph, so it does not count".to_string(),
            Some(best) if score > best => format!("new best, before {best:.4}"),
            Some(best) => format!("not better than the best, {best:.4}, which stays"),
            None => "first evaluation".to_string(),
        };
        let _ = writeln!(out, "score (AS) {score:.4}: {standing}");
    }
    let _ = writeln!(out, "{}", counts(found));
    match found.graphs.len() <= LISTED && !is_uniform_failure(found) {
        true => found.graphs.iter().for_each(|graph| line(&mut out, task, found.question, graph)),
        false => groups(&mut out, task, found),
    }
    for remark in found.remarks.iter().take(ADVICE) {
        let _ = writeln!(out, "note: {}", clipped(&remark.to_string()));
    }
    for advice in advice(found) {
        let _ = writeln!(out, "try: {}", clipped(&advice));
    }
    if out.len() > MAX_CHARS {
        let end = (0..=MAX_CHARS).rev().find(|at| out.is_char_boundary(*at)).unwrap_or(0);
        out.truncate(end);
        out.push_str("…\n");
    }
    out
}

fn counts(found: &Assessment) -> String {
    let looked = match found.graphs.len() == found.graphs_in_task {
        true => format!("{} graphs", found.graphs_in_task),
        false => format!("{} of {} graphs looked at", found.graphs.len(), found.graphs_in_task),
    };
    let kinds: Vec<String> = VerdictKind::ALL
        .into_iter()
        .map(|kind| (kind, found.count(kind)))
        .filter(|(_, count)| *count > 0)
        .map(|(kind, count)| format!("{count} {}", name(found.question, kind)))
        .collect();
    format!("{looked}: {}", kinds.join(", "))
}

/// Matching says nothing about numbers, so it must not say `correct`.
fn name(question: Question, kind: VerdictKind) -> &'static str {
    match (question, kind) {
        (Question::Match, VerdictKind::Correct) => "matched",
        (_, kind) => kind.name(),
    }
}

/// Nothing ran and everything failed for one reason: one line says it all.
fn is_uniform_failure(found: &Assessment) -> bool {
    let reason = |graph: &GraphAssessment| graph.verdict.clone();
    let Some(first) = found.graphs.first() else { return true };
    found.graphs.len() > 1
        && first.verdict.kind != VerdictKind::Correct
        && found.graphs.iter().all(|graph| reason(graph) == first.verdict)
}

fn line(out: &mut String, task: &Task, question: Question, graph: &GraphAssessment) {
    let _ = write!(
        out,
        "graph {} {}: {}",
        graph.graph,
        signature(task, graph.graph),
        name(question, graph.verdict.kind)
    );
    if let (Some(speedup), VerdictKind::Correct) = (graph.speedup, graph.verdict.kind) {
        let _ = write!(out, ", {}x eager", ratio_text(speedup));
        if let Some((low, high)) = graph.interval {
            let _ = write!(out, " [{}, {}]", ratio_text(low), ratio_text(high));
        }
    }
    if let (Some(candidate), Some(eager)) = (graph.candidate_ms, graph.eager_ms) {
        let _ =
            write!(out, ", {} ms against eager's {} ms", ratio_text(candidate), ratio_text(eager));
        if let Some(floor) = graph.roofline_ms {
            let _ = write!(out, ", hardware floor {} ms", ratio_text(floor));
        }
    }
    if question == Question::Match && graph.matches > 0 {
        let _ =
            write!(out, " at {} place{}", graph.matches, if graph.matches == 1 { "" } else { "s" });
    }
    let _ = writeln!(out);
    for evidence in graph.verdict.evidence.iter().take(2) {
        let _ = writeln!(out, "  {}", clipped(&evidence.to_string()));
    }
}

/// Shape and type of the first input.
fn signature(task: &Task, graph: usize) -> String {
    let folder = task.graphs.get(graph).and_then(|graph| graph.folder.as_ref());
    let meta = folder.and_then(|folder| folder.metas.first());
    meta.map_or_else(String::new, |meta| format!("({} {:?})", meta.dtype.name(), meta.shape))
}

fn groups(out: &mut String, task: &Task, found: &Assessment) {
    let mut groups: BTreeMap<(VerdictKind, String), Vec<&GraphAssessment>> = BTreeMap::new();
    for graph in &found.graphs {
        // Numbers differ from graph to graph; what kind of thing went wrong does not.
        let reason = match graph.verdict.kind {
            VerdictKind::Correct | VerdictKind::Accuracy => String::new(),
            _ => {
                graph.verdict.evidence.first().map(|e| clipped(&e.to_string())).unwrap_or_default()
            }
        };
        groups.entry((graph.verdict.kind, reason)).or_default().push(graph);
    }
    let mut groups: Vec<_> = groups.into_iter().collect();
    groups.sort_by_key(|(_, graphs)| std::cmp::Reverse(graphs.len()));
    for ((kind, reason), graphs) in groups.iter().take(GROUPS) {
        if *kind == VerdictKind::Correct {
            speeds(out, task, found.question, graphs);
            continue;
        }
        let numbers: Vec<String> = graphs.iter().take(3).map(|g| g.graph.to_string()).collect();
        let more = if graphs.len() > 3 { ", …" } else { "" };
        let _ = writeln!(
            out,
            "{} graphs {} (graphs {}{more})",
            graphs.len(),
            kind.name(),
            numbers.join(", ")
        );
        match reason.is_empty() {
            false => {
                let _ = writeln!(out, "  {reason}");
            }
            true => line(out, task, found.question, graphs[0]),
        }
    }
    if groups.len() > GROUPS {
        let _ = writeln!(out, "and {} other kinds of failure", groups.len() - GROUPS);
    }
}

/// The slowest and the fastest of many right graphs.
fn speeds(out: &mut String, task: &Task, question: Question, graphs: &[&GraphAssessment]) {
    let count = |wanted: Decision| graphs.iter().filter(|g| g.decision == Some(wanted)).count();
    let mut timed: Vec<&&GraphAssessment> = graphs.iter().filter(|g| g.speedup.is_some()).collect();
    if timed.is_empty() {
        return;
    }
    let _ = writeln!(
        out,
        "{} faster, {} even, {} slower than eager; the slowest:",
        count(Decision::Faster),
        count(Decision::Tie),
        count(Decision::Slower)
    );
    timed.sort_by(|a, b| a.speedup.unwrap_or(0.0).total_cmp(&b.speedup.unwrap_or(0.0)));
    timed.iter().take(3).for_each(|graph| line(out, task, question, graph));
}

/// What to do next, most useful first, each once.
fn advice(found: &Assessment) -> Vec<String> {
    let mut advice: Vec<String> = Vec::new();
    let mut add = |text: String| {
        if advice.len() < ADVICE && !advice.contains(&text) {
            advice.push(text);
        }
    };
    for text in found.graphs.iter().flat_map(|graph| &graph.advice) {
        add(text.clone());
    }
    for graph in &found.graphs {
        if let Some(text) = general_advice(graph) {
            add(text.to_string());
        }
    }
    if found.question == Question::Match && found.graphs.iter().all(|graph| graph.matches > 0) {
        add("`check` looks at rules, numbers and kernels".into());
    }
    if found.question == Question::Check && found.is_all_correct() {
        add("`evaluate` times it and gives the score".into());
    }
    advice
}

fn general_advice(graph: &GraphAssessment) -> Option<&'static str> {
    let evidence = || graph.verdict.evidence.iter().map(ToString::to_string);
    Some(match graph.verdict.kind {
        VerdictKind::CompileFail if evidence().any(|text| text.contains("lists no pass")) => {
            "write the stems of your pass files as a JSON list into pass_dir/sorted_output_pass_rule_names.json"
        }
        VerdictKind::Accuracy => {
            "compute in float32 and round to the tensor's dtype wherever the graph stores an intermediate"
        }
        VerdictKind::DtypeMismatch => "allocate the output with the dtype that the graph returns",
        VerdictKind::ShapeMismatch => "return the shape that the graph returns, for every variant",
        VerdictKind::Integrity => {
            "the replacement must compute with its own kernels, not call the framework"
        }
        VerdictKind::Timeout => "fewer and larger programs: the kernels take too long",
        VerdictKind::Correct => match (graph.decision?, graph.candidate_ms, graph.roofline_ms) {
            (_, Some(candidate), Some(floor)) if candidate < floor * NEAR_FLOOR => {
                "this is close to the hardware floor; `submit` unless other variants are slow"
            }
            (Decision::Slower, ..) => {
                "slower than eager: one pass over memory, larger blocks, fewer programs, no copies in the wrapper"
            }
            (Decision::Tie, ..) => "as fast as eager: fuse more operations or move less memory",
            (Decision::Faster, ..) => return None,
        },
        _ => return None,
    })
}

fn clipped(text: &str) -> String {
    let line = printable(text);
    match line.char_indices().nth(EVIDENCE) {
        Some((at, _)) => format!("{}…", &line[..at]),
        None => line,
    }
}
