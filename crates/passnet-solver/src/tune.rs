//! Choosing by measurement: tile sizes are tried on the piece alone, against eager, in turns.

use crate::analysis::Piece;
use crate::emit::{Choice, Draft, solution_files};
use crate::graph_family::GraphFamily;
use crate::measuring::{Measuring, Times};
use crate::piece_race;
use passnet_bench::candidate::Candidate;
use passnet_bench::evaluate::{EvaluateOptions, evaluate};
use passnet_bench::subject::Subject;
use passnet_bench::timing::TimingOptions;
use passnet_bench::verdict::VerdictKind;
use passnet_engine::Engine;
use passnet_graph::GraphFiles;
use std::collections::BTreeMap;

/// Elements beyond which a piece is too slow on the host to try more than the first choices.
const LARGE: i64 = 1 << 22;
const FIRST_CHOICES: usize = 2;
/// How much faster another choice must be: less is noise.
const WORTH_CHANGING: f64 = 1.02;

/// What measuring one pass found.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Measured {
    pub choice: Choice,
    pub speedup: f64,
    pub eager_seconds: f64,
    pub seconds: f64,
    /// What choices are compared by: less is better.
    pub compared: f64,
}

/// Right on one draw, and timed shortly.
pub(crate) fn quick(seconds: f64) -> EvaluateOptions {
    let timing = TimingOptions {
        warmup: 2,
        trials: 12,
        max_trials: 12,
        seconds,
        least: 5,
        ..TimingOptions::default()
    };
    EvaluateOptions { timing, draws: 0, thorough: false, ..EvaluateOptions::default() }
}

/// Tries choices for a draft, at least the first of them. `Err` holds the reason why the piece is not right or does not run.
pub(crate) fn tune(
    engine: &dyn Engine,
    family: &GraphFamily,
    (piece, draft): (&Piece, &Draft<'_>),
    choices: &[Choice],
    measuring: &Measuring,
) -> Result<Option<Measured>, String> {
    let mut graphs: Vec<GraphFiles> = Vec::new();
    let mut large = false;
    for member in piece_race::representatives(family, piece) {
        let Some(files) = piece_race::files(family, piece, member) else { return Ok(None) };
        let elements = piece_race::largest_elements(piece, member);
        large |= engine.computes_on_host() && elements > LARGE;
        graphs.push(files);
    }
    let mut best: Option<Measured> = None;
    let most = if large { FIRST_CHOICES } else { choices.len() };
    for &choice in choices.iter().take(most) {
        if best.is_some() && measuring.is_over() {
            break;
        }
        let Ok(text) = draft.write(choice) else { continue };
        let passes = solution_files(&[&text]);
        let mut measured: Vec<Measured> = Vec::new();
        for files in &graphs {
            match measure(engine, files, &passes, measuring)? {
                Found::Times(times) => {
                    let compared = times.compared();
                    let Times { speedup, eager_seconds, seconds, .. } = times;
                    measured.push(Measured { choice, speedup, eager_seconds, seconds, compared });
                }
                Found::NoTimes => {}
                Found::NoReference => return Ok(None),
            }
        }
        let Some(measured) = together(&measured) else { break };
        if best.is_none_or(|best| measured.compared * WORTH_CHANGING < best.compared) {
            best = Some(measured);
        }
    }
    Ok(best)
}

/// What came of measuring a choice in one graph.
enum Found {
    Times(Times),
    /// It is right and was not timed.
    NoTimes,
    /// The piece alone cannot be drawn as the graph would: the judgement is left to the whole graph.
    NoReference,
}

/// Times passes on a piece, or finds what an earlier tuning saw.
fn measure(
    engine: &dyn Engine,
    files: &GraphFiles,
    passes: &BTreeMap<String, String>,
    measuring: &Measuring,
) -> Result<Found, String> {
    let key = measuring.key(files, passes);
    if let Some(times) = measuring.known(&key) {
        return Ok(Found::Times(times));
    }
    let candidate =
        Candidate::from_files(passes.clone(), None, true).map_err(|verdict| verdict.to_string())?;
    let evaluation =
        evaluate(engine, files, Subject::Passes(&candidate), &quick(measuring.seconds));
    match (evaluation.judged.verdict.kind, evaluation.judged.speedup) {
        (VerdictKind::Correct, Some(speedup)) => {
            let times = Times {
                speedup,
                eager_seconds: median(&evaluation.eager_ms) / 1e3,
                seconds: median(&evaluation.candidate_ms) / 1e3,
                device_seconds: evaluation.candidate_costs.device_ms.map(|ms| ms / 1e3),
            };
            measuring.keep(&key, times);
            Ok(Found::Times(times))
        }
        (VerdictKind::Correct, None) => Ok(Found::NoTimes),
        (VerdictKind::ReferenceFail, _) => Ok(Found::NoReference),
        _ => Err(evaluation.judged.verdict.to_string()),
    }
}

fn median(times: &[f64]) -> f64 {
    let mut times = times.to_vec();
    times.sort_by(f64::total_cmp);
    times.get(times.len() / 2).copied().unwrap_or(0.0)
}

/// The mean of several measurements of one choice, with the times of the first.
fn together(measured: &[Measured]) -> Option<Measured> {
    let first = *measured.first()?;
    let mean = |value: fn(&Measured) -> f64| {
        let logs = measured.iter().map(|measured| value(measured).ln()).sum::<f64>();
        (logs / measured.len() as f64).exp()
    };
    let (speedup, compared) = (mean(|measured| measured.speedup), mean(|m| m.compared));
    Some(Measured { speedup, compared, ..first })
}
