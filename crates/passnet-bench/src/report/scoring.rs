//! A run scored both ways, in the form in which logs are.

use super::{GraphRecord, RunRecord};
use crate::log::{
    Difference, DifferenceKind, Finding, LogReport, LoggedGraph, differ, reference_ladder,
    reference_scored,
};
use crate::reference_format;
use crate::score::{JudgedGraph, Parameters, Score, ScoredGraph};
use crate::tolerance::{BASELINE, Ladder};
use crate::verdict::ReferenceStatus;

/// What the reference would have made of one graph.
struct ReferenceView {
    status: ReferenceStatus,
    ladder: Ladder,
    scored: ScoredGraph,
}

/// Judges every graph of a run both ways. The reference's judgement is that of the log it would have written.
pub fn score_run(run: &RunRecord, parameters: Parameters) -> LogReport {
    let mut findings = Vec::new();
    if !run.is_complete {
        let text = "the run was stopped before its end; graphs that were not reached do not count";
        findings.push(Finding { graph: None, line: None, text: text.into() });
    }
    let mut report = LogReport {
        graphs: Vec::new(),
        findings,
        differences: Vec::new(),
        strict: Score::of(&run.scored(), parameters),
        reference: None,
    };
    let mut reference = Vec::with_capacity(run.graphs.len());
    for graph in &run.graphs {
        let view = reference_view(run, graph);
        report.differences.extend(difference(graph, &view, parameters));
        reference.push(view.scored);
        let judged = &graph.event.evaluation.judged;
        report.graphs.push(LoggedGraph {
            judged: JudgedGraph { graph: graph.name().to_string(), ..judged.clone() },
            reference_status: Some(view.status),
            line: None,
        });
    }
    report.reference = Score::of(&reference, parameters);
    report
}

fn reference_view(run: &RunRecord, graph: &GraphRecord) -> ReferenceView {
    match reference_format::logged_block(run.start.as_ref(), graph) {
        Some(block) => ReferenceView {
            status: block.reference_status(),
            ladder: reference_ladder(&block),
            scored: reference_scored(&block),
        },
        // A graph without a block is one the reference never began.
        None => ReferenceView {
            status: ReferenceStatus::EagerFail,
            ladder: Ladder::NONE,
            scored: ScoredGraph::of_status(ReferenceStatus::EagerFail, Ladder::NONE, None),
        },
    }
}

fn difference(
    graph: &GraphRecord,
    view: &ReferenceView,
    parameters: Parameters,
) -> Option<Difference> {
    let judged = &graph.event.evaluation.judged;
    // With the same speed-up: that a log rounds it to five decimals is no difference of judgement.
    let reference = ScoredGraph::of_status(view.status, view.ladder, judged.speedup);
    if !differ(&reference, &graph.scored(), parameters) {
        return None;
    }
    let kind = judged.verdict.kind;
    let (why, reason) = match view.status {
        ReferenceStatus::Correct => ladders_differ(graph, view.ladder),
        _ => (DifferenceKind::Misclassified, kind.classification().why.to_string()),
    };
    Some(Difference {
        graph: graph.name().to_string(),
        kind: why,
        reference: Some(view.status),
        strict: Some(kind),
        reason,
    })
}

fn ladders_differ(graph: &GraphRecord, reference: Ladder) -> (DifferenceKind, String) {
    let judged = &graph.event.evaluation.judged;
    let from =
        |ladder: Ladder| ladder.first_right().map_or("never".into(), |t| format!("from t = {t}"));
    let levels = format!("right {} here, {} there", from(judged.ladder), from(reference));
    let is_right = (judged.ladder.is_right_at(BASELINE), reference.is_right_at(BASELINE));
    match is_right {
        (true, false) => (
            DifferenceKind::Yardstick,
            format!(
                "outside eager's tolerance but as close to the float64 result as eager; {levels}"
            ),
        ),
        (false, true) => {
            let evidence = judged.verdict.evidence.first().map(|e| format!(" ({e})"));
            let evidence = evidence.unwrap_or_default();
            let text = format!("wrong on inputs the reference does not try{evidence}; {levels}");
            (DifferenceKind::OtherInputs, text)
        }
        _ => (
            DifferenceKind::OtherInputs,
            format!(
                "the reference tries one draw of inputs, and over all draws the ladder is another; {levels}"
            ),
        ),
    }
}
