//! Choosing by measurement: tile sizes are tried on the piece alone, against eager, in turns.

use crate::analysis::Piece;
use crate::emit::{Choice, Draft};
use crate::form::Form;
use crate::solve::{SolveError, write_folder};
use crate::trial;
use passnet_bench::candidate::Candidate;
use passnet_bench::evaluate::{EvaluateOptions, evaluate};
use passnet_bench::timing::TimingOptions;
use passnet_bench::verdict::VerdictKind;
use passnet_engine::Engine;
use std::path::Path;

/// Beyond this a piece is too slow to try more than one choice.
const LARGE: i64 = 1 << 22;

/// What measuring one pass found.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Measured {
    pub choice: Choice,
    pub speedup: f64,
    pub eager_seconds: f64,
    pub seconds: f64,
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

/// Tries choices for a draft. `Err` holds the reason why the piece is not right or does not run.
pub fn tune(
    engine: &dyn Engine,
    form: &Form,
    piece: &Piece,
    draft: &Draft<'_>,
    folder: &Path,
    seconds: f64,
) -> Result<Result<Option<Measured>, String>, SolveError> {
    let member = trial::representative(piece);
    let Some(files) = trial::files(form, piece, member) else { return Ok(Ok(None)) };
    let large = trial::largest_elements(piece, member) > LARGE;
    let mut best: Option<Measured> = None;
    for choice in draft.choices() {
        let Ok(text) = draft.write(choice) else { break };
        write_folder(folder, &[&text])?;
        let candidate = match Candidate::load(folder, None, true) {
            Ok(candidate) => candidate,
            Err(verdict) => return Ok(Err(verdict.to_string())),
        };
        let evaluation = evaluate(engine, &files, Some(&candidate), &quick(seconds));
        if evaluation.judged.verdict.kind != VerdictKind::Correct {
            // The piece alone cannot be drawn as the graph would: leave the judgement to the whole graph.
            if evaluation.judged.verdict.kind == VerdictKind::ReferenceFail {
                return Ok(Ok(None));
            }
            return Ok(Err(evaluation.judged.verdict.to_string()));
        }
        let Some(speedup) = evaluation.judged.speedup else { break };
        let median = |times: &[f64]| {
            let mut times = times.to_vec();
            times.sort_by(f64::total_cmp);
            times.get(times.len() / 2).copied().unwrap_or(0.0) / 1e3
        };
        let measured = Measured {
            choice,
            speedup,
            eager_seconds: median(&evaluation.eager_ms),
            seconds: median(&evaluation.candidate_ms),
        };
        if best.is_none_or(|best| measured.speedup > best.speedup * 1.02) {
            best = Some(measured);
        }
        if large {
            break;
        }
    }
    Ok(Ok(best))
}
