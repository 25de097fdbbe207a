//! Choosing by measurement: tile sizes are tried on the piece alone, against eager, in turns.

use crate::analysis::Piece;
use crate::emit::{Choice, Draft, solution_files};
use crate::graph_family::GraphFamily;
use crate::piece_race;
use passnet_bench::candidate::Candidate;
use passnet_bench::evaluate::{EvaluateOptions, evaluate};
use passnet_bench::subject::Subject;
use passnet_bench::timing::TimingOptions;
use passnet_bench::verdict::VerdictKind;
use passnet_engine::Engine;
use passnet_graph::GraphFiles;

/// Beyond this a piece is too slow to try more than the first choices.
const LARGE: i64 = 1 << 22;
const FIRST_CHOICES: usize = 2;

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
    family: &GraphFamily,
    (piece, draft): (&Piece, &Draft<'_>),
    choices: &[Choice],
    seconds: f64,
) -> Result<Option<Measured>, String> {
    let mut graphs: Vec<GraphFiles> = Vec::new();
    let mut large = false;
    for member in piece_race::representatives(family, piece) {
        let Some(files) = piece_race::files(family, piece, member) else { return Ok(None) };
        large |= piece_race::largest_elements(piece, member) > LARGE;
        graphs.push(files);
    }
    let mut best: Option<Measured> = None;
    let most = if large { FIRST_CHOICES } else { choices.len() };
    for &choice in choices.iter().take(most) {
        let Ok(text) = draft.write(choice) else { continue };
        let candidate = Candidate::from_files(solution_files(&[&text]), None, true)
            .map_err(|verdict| verdict.to_string())?;
        let mut measured: Vec<Measured> = Vec::new();
        for files in &graphs {
            let evaluation = evaluate(engine, files, Subject::Passes(&candidate), &quick(seconds));
            match (evaluation.judged.verdict.kind, evaluation.judged.speedup) {
                (VerdictKind::Correct, Some(speedup)) => measured.push(Measured {
                    choice,
                    speedup,
                    eager_seconds: median(&evaluation.eager_ms) / 1e3,
                    seconds: median(&evaluation.candidate_ms) / 1e3,
                }),
                (VerdictKind::Correct, None) => {}
                // The piece alone cannot be drawn as the graph would: leave the judgement to the whole graph.
                (VerdictKind::ReferenceFail, _) => return Ok(None),
                _ => return Err(evaluation.judged.verdict.to_string()),
            }
        }
        let Some(measured) = together(&measured) else { break };
        if best.is_none_or(|best| measured.speedup > best.speedup * 1.02) {
            best = Some(measured);
        }
    }
    Ok(best)
}

fn median(times: &[f64]) -> f64 {
    let mut times = times.to_vec();
    times.sort_by(f64::total_cmp);
    times.get(times.len() / 2).copied().unwrap_or(0.0)
}

/// The mean of several measurements of one choice, with the times of the first.
fn together(measured: &[Measured]) -> Option<Measured> {
    let first = *measured.first()?;
    let logs = measured.iter().map(|measured| measured.speedup.ln()).sum::<f64>();
    Some(Measured { speedup: (logs / measured.len() as f64).exp(), ..first })
}
