//! What really happened to a graph, as far as its part of a log can tell.
//!
//! An honest harness prints each line once, in agreement with the others. Whatever breaks that was not printed by
//! the harness, and the graph is judged `integrity`; whatever failed gets the verdict of its own cause.

use super::block::{GraphBlock, Mention, Phrase, Reading};
use super::difference::{DifferenceKind, Finding};
use super::reference::reference_ladder;
use crate::score::JudgedGraph;
use crate::stats::median;
use crate::tolerance::{BASELINE, Ladder, levels};
use crate::verdict::{Evidence, Verdict, VerdictKind};

/// A verdict and, where the reference would have said something else, why.
pub(super) struct Judgement {
    pub judged: JudgedGraph,
    pub reason: Option<(DifferenceKind, String)>,
}

type Reason = (DifferenceKind, String);

/// Failures carry their verdict out of the checks below.
struct Failure {
    verdict: Verdict,
    reason: Reason,
}

fn fail(verdict: Verdict, kind: DifferenceKind, reason: impl Into<String>) -> Failure {
    Failure { verdict, reason: (kind, reason.into()) }
}

fn line_evidence(mention: &Mention) -> Evidence {
    Evidence::LogLine { line: mention.line, text: mention.text.clone() }
}

pub(super) fn judge(block: &GraphBlock, findings: &mut Vec<Finding>) -> Judgement {
    note_repetitions(block, findings);
    let judged = |verdict, ladder, speedup| JudgedGraph {
        graph: block.path.clone(),
        verdict,
        ladder,
        speedup,
    };
    match examine(block, findings) {
        Ok((ladder, speedup, reason)) => {
            let verdict = if ladder.is_right_at(BASELINE) {
                Verdict::new(VerdictKind::Correct)
            } else {
                largest_difference(block)
            };
            Judgement { judged: judged(verdict, ladder, Some(speedup)), reason }
        }
        Err(Failure { verdict, reason }) => {
            Judgement { judged: judged(verdict, Ladder::NONE, None), reason: Some(reason) }
        }
    }
}

/// All that a log keeps about wrong numbers.
fn largest_difference(block: &GraphBlock) -> Verdict {
    let verdict = Verdict::new(VerdictKind::Accuracy);
    match block.correctness.get("max_diff") {
        Some(reading) => {
            let values: Vec<String> = reading.value.iter().map(ToString::to_string).collect();
            verdict.because(format!("largest difference of each output: {}", values.join(" ")))
        }
        None => verdict,
    }
}

/// The checks in order: first what cannot be believed, then what failed, then the numbers.
fn examine(
    block: &GraphBlock,
    findings: &mut Vec<Finding>,
) -> Result<(Ladder, f64, Option<Reason>), Failure> {
    refuse_contradictions(block)?;
    if let Some(mention) = block.mention(Phrase::ForbiddenOperator) {
        let verdict = Verdict::new(VerdictKind::Integrity).with(line_evidence(mention));
        let reason = "the replacement used an operator it must not use";
        return Err(fail(verdict, DifferenceKind::Misclassified, reason));
    }
    let (Some(eager), Some(compiled)) = (&block.eager_types, &block.compiled_types) else {
        return Err(did_not_finish(block));
    };
    check_types(block, &eager.value, &compiled.value)?;
    let ladder = check_values(block, &eager.value)?;
    let Some(speedup) = &block.speedup else {
        return without_speedup(block, ladder);
    };
    check_speedup(block, speedup, findings)?;
    Ok((ladder, speedup.value, stray_error(block)))
}

fn contradiction<T>(what: &str, reading: Option<&Reading<T>>) -> Option<(String, usize, usize)> {
    let reading = reading?;
    let earlier = reading.contradicted_at?;
    Some((what.to_string(), earlier, reading.line))
}

fn refuse_contradictions(block: &GraphBlock) -> Result<(), Failure> {
    let values = block.correctness.iter();
    let mut found: Vec<_> = values.filter_map(|(key, r)| contradiction(key, Some(r))).collect();
    found.extend(contradiction("speed-up", block.speedup.as_ref()));
    found.extend(contradiction("eager types", block.eager_types.as_ref()));
    found.extend(contradiction("compiled types", block.compiled_types.as_ref()));
    found.extend(contradiction("type match", block.types_match.as_ref()));
    found.extend(contradiction("shape match", block.shapes_match.as_ref()));
    found.extend(contradiction("result", block.success.as_ref()));
    found.extend(contradiction("eager time", block.eager_median.as_ref()));
    found.extend(contradiction("compiled time", block.compiled_median.as_ref()));
    let Some((what, earlier, later)) = found.into_iter().min_by_key(|(_, _, line)| *line) else {
        return Ok(());
    };
    let text = format!("lines {earlier} and {later} disagree about the {what} of one graph");
    let reason =
        format!("{text}; the harness prints it once, the reference believes the last line");
    let verdict = Verdict::new(VerdictKind::Integrity).because(text);
    Err(fail(verdict, DifferenceKind::ForgedLine, reason))
}

/// Lines that repeat without contradicting change no number, but no harness prints them twice.
fn note_repetitions(block: &GraphBlock, findings: &mut Vec<Finding>) {
    if let Some(speedup) = block.speedup.as_ref().filter(|r| r.times > 1) {
        findings.push(Finding {
            graph: Some(block.path.clone()),
            line: Some(speedup.line),
            text: format!("{} speed-up lines for one graph", speedup.times),
        });
    }
    if let Some(mention) = &block.unreadable {
        findings.push(Finding {
            graph: Some(block.path.clone()),
            line: Some(mention.line),
            text: format!("unreadable value: {}", mention.text),
        });
    }
}

/// No type lines: something raised before the outputs were compared. The text says what.
fn did_not_finish(block: &GraphBlock) -> Failure {
    const TAKEN_FOR_EAGER: &str = "the reference prints no result lines after an exception and takes that for an eager failure";
    let causes = [
        (Phrase::TimingNoise, VerdictKind::Unstable, DifferenceKind::NoiseGate),
        (Phrase::NothingMatched, VerdictKind::NoMatch, DifferenceKind::Misclassified),
        (Phrase::PassCrashed, VerdictKind::CompileFail, DifferenceKind::Misclassified),
        (Phrase::CompilerFailed, VerdictKind::CompileFail, DifferenceKind::Misclassified),
        (Phrase::EagerFailed, VerdictKind::ReferenceFail, DifferenceKind::Misclassified),
        (Phrase::CompiledFailed, VerdictKind::RuntimeFail, DifferenceKind::Misclassified),
        (Phrase::AnyError, VerdictKind::RuntimeFail, DifferenceKind::Misclassified),
    ];
    for (phrase, verdict, kind) in causes {
        if let Some(mention) = block.mention(phrase) {
            let reason = match phrase {
                Phrase::TimingNoise => "timings were too noisy; measure this graph again",
                _ => TAKEN_FOR_EAGER,
            };
            return fail(Verdict::new(verdict).with(line_evidence(mention)), kind, reason);
        }
    }
    stopped(block)
}

fn stopped(block: &GraphBlock) -> Failure {
    let text = "the log says nothing more about this graph: the process died or the log was cut";
    let verdict = Verdict::new(VerdictKind::RuntimeFail).because(text);
    fail(verdict, DifferenceKind::Truncated, format!("{text} (it begins at line {})", block.line))
}

fn check_types(block: &GraphBlock, eager: &[String], compiled: &[String]) -> Result<(), Failure> {
    const REASON: &str =
        "the reference stops before it compares, sees no shape line and calls it a shape mismatch";
    if eager.len() != compiled.len() {
        let evidence = Evidence::OutputCount { expected: eager.len(), actual: compiled.len() };
        let verdict = Verdict::new(VerdictKind::ShapeMismatch).with(evidence);
        return Err(fail(verdict, DifferenceKind::Misclassified, REASON));
    }
    let wrong = eager.iter().zip(compiled).position(|(e, c)| e != c);
    match (&block.types_match, wrong) {
        (_, Some(output)) => {
            let (expected, actual) = (eager[output].clone(), compiled[output].clone());
            let evidence = Evidence::Dtype { output, expected, actual };
            let verdict = Verdict::new(VerdictKind::DtypeMismatch).with(evidence);
            Err(fail(verdict, DifferenceKind::Misclassified, REASON))
        }
        (Some(Reading { value: true, .. }), None) => Ok(()),
        (Some(Reading { line, .. }), None) => {
            let text = format!("line {line} says that equal types do not match");
            let verdict = Verdict::new(VerdictKind::Integrity).because(text.clone());
            Err(fail(verdict, DifferenceKind::ForgedLine, text))
        }
        (None, None) => Err(stopped(block)),
    }
}

fn check_values(block: &GraphBlock, types: &[String]) -> Result<Ladder, Failure> {
    if let Some(Reading { value: false, line, .. }) = block.shapes_match {
        let text = format!("line {line} says that the shapes differ");
        let verdict = Verdict::new(VerdictKind::ShapeMismatch).because(text.clone());
        return Err(fail(verdict, DifferenceKind::BroadcastShape, text));
    }
    if !block.has_tolerance_lines() {
        return Err(comparison_raised(block));
    }
    let missing = types.iter().any(|name| {
        levels().any(|t| !block.correctness.contains_key(&GraphBlock::deciding_key(name, t)))
    });
    if missing {
        return Err(stopped(block));
    }
    for (key, reading) in &block.correctness {
        let is_check = key == "equal" || key.starts_with("all_close_");
        let sound = reading.value.len() == types.len()
            && reading.value.iter().all(|v| !is_check || v.0 == 0.0 || v.0 == 1.0);
        if !sound {
            let text = format!("line {} does not fit {} outputs", reading.line, types.len());
            let verdict = Verdict::new(VerdictKind::Integrity).because(text.clone());
            return Err(fail(verdict, DifferenceKind::ForgedLine, text));
        }
    }
    let ladder = reference_ladder(block);
    if !ladder.is_monotone() {
        let text = "right at a strict tolerance and wrong at a looser one, which is impossible";
        let verdict = Verdict::new(VerdictKind::Integrity).because(format!("{text}: {ladder}"));
        return Err(fail(verdict, DifferenceKind::ForgedLine, text));
    }
    refuse_broadcast(block, types)?;
    Ok(ladder)
}

/// Types were printed, tolerances were not: comparing raised an exception.
fn comparison_raised(block: &GraphBlock) -> Failure {
    if let Some(mention) = block.mention(Phrase::AttributeError) {
        let verdict = Verdict::new(VerdictKind::Unsupported).with(line_evidence(mention));
        let reason =
            "an output is no tensor; the reference cannot compare it and calls it a shape mismatch";
        return fail(verdict, DifferenceKind::Misclassified, reason);
    }
    match block.mention(Phrase::AnyError) {
        Some(mention) => {
            let verdict = Verdict::new(VerdictKind::ShapeMismatch).with(line_evidence(mention));
            fail(verdict, DifferenceKind::Misclassified, "the outputs could not be compared")
        }
        None => stopped(block),
    }
}

/// The largest difference is 0 and yet the tensors are not equal: they have different shapes that broadcast.
/// Where the difference was rounded to 0 (wide types are compared in float32) nothing follows.
fn refuse_broadcast(block: &GraphBlock, types: &[String]) -> Result<(), Failure> {
    let value = |key: &str, output: usize| {
        block.correctness.get(key).and_then(|r| r.value.get(output)).map(|v| v.0)
    };
    for (output, name) in types.iter().enumerate() {
        let is_narrow = matches!(name.as_str(), "float16" | "bfloat16" | "float32");
        if is_narrow
            && value("equal", output) == Some(0.0)
            && value("max_diff", output) == Some(0.0)
        {
            let text = format!("output {output} differs from eager's in nothing but its shape");
            let verdict = Verdict::new(VerdictKind::ShapeMismatch).because(text.clone());
            let reason = format!("{text}; the reference lets shapes broadcast");
            return Err(fail(verdict, DifferenceKind::BroadcastShape, reason));
        }
    }
    Ok(())
}

/// Compared, but no speed-up: the reference's own summary of an empty output raises. The trials still tell.
fn without_speedup(
    block: &GraphBlock,
    ladder: Ladder,
) -> Result<(Ladder, f64, Option<Reason>), Failure> {
    match (speedup_of_trials(block), block.mention(Phrase::AnyError)) {
        (Some(speedup), Some(_)) => {
            let reason = "the reference fails on its own summary (an empty output has no maximum); \
                          the speed-up is that of the trials";
            Ok((ladder, speedup, Some((DifferenceKind::EmptyOutput, reason.into()))))
        }
        (None, Some(mention)) => {
            let verdict = Verdict::new(VerdictKind::RuntimeFail).with(line_evidence(mention));
            Err(fail(verdict, DifferenceKind::Misclassified, "no speed-up was printed"))
        }
        (_, None) => Err(stopped(block)),
    }
}

/// (compiled, eager) trials, if the log has them all.
fn trials(block: &GraphBlock) -> Option<(&[f64], &[f64])> {
    let n = block.trials.filter(|&n| n > 0)?;
    (block.trial_times.len() == n.checked_mul(2)?).then(|| block.trial_times.split_at(n))
}

fn speedup_of_trials(block: &GraphBlock) -> Option<f64> {
    let (compiled, eager) = trials(block)?;
    let speedup = median(eager)? / median(compiled)?;
    (speedup.is_finite() && speedup > 0.0).then_some(speedup)
}

/// A speed-up must be the ratio of the medians beside it and must not stand beside a failure.
fn check_speedup(
    block: &GraphBlock,
    speedup: &Reading<f64>,
    findings: &mut Vec<Finding>,
) -> Result<(), Failure> {
    let forged = |text: String| {
        let verdict = Verdict::new(VerdictKind::Integrity).because(text.clone());
        Err(fail(verdict, DifferenceKind::ForgedLine, text))
    };
    if let Some(Reading { value: false, line, .. }) = block.success {
        return forged(format!(
            "line {} gives a speed-up although line {line} reports a failure",
            speedup.line
        ));
    }
    if !(speedup.value.is_finite() && speedup.value > 0.0) {
        return forged(format!("line {} gives a speed-up that no timing gives", speedup.line));
    }
    let medians = block.eager_median.as_ref().zip(block.compiled_median.as_ref());
    let Some((eager, compiled)) = medians else {
        let text =
            format!("line {} gives a speed-up without the times it comes from", speedup.line);
        return forged(text);
    };
    let ratio = eager.value / compiled.value;
    // Printed with five decimals.
    let agrees = (ratio - speedup.value).abs() <= 1e-5 + 1e-9 * ratio.abs();
    if !agrees {
        return forged(format!(
            "line {} gives a speed-up of {}, the medians give {ratio:.5}",
            speedup.line, speedup.value
        ));
    }
    if let Some((compiled_trials, eager_trials)) = trials(block) {
        for (side, trials, printed) in
            [("compiled", compiled_trials, compiled), ("eager", eager_trials, eager)]
        {
            let disagrees = |m: f64| (m - printed.value).abs() > 2e-5 + 1e-5 * printed.value.abs();
            if median(trials).is_some_and(disagrees) {
                findings.push(Finding {
                    graph: Some(block.path.clone()),
                    line: Some(printed.line),
                    text: format!("the {side} median is not that of the trials"),
                });
            }
        }
    }
    Ok(())
}

/// Some library's words that the reference takes for the graph's own failure.
fn stray_error(block: &GraphBlock) -> Option<Reason> {
    if let Some(mention) = &block.late_error {
        let reason = format!(
            "line {}, after the graph's own result, contains `Error:`; the reference blames this graph",
            mention.line
        );
        return Some((DifferenceKind::StrayError, reason));
    }
    let mention = block.mention(Phrase::AnyError)?;
    let reason = format!(
        "line {} contains `Error:` but the graph ran to its end; the reference calls it a failure",
        mention.line
    );
    Some((DifferenceKind::StrayError, reason))
}
