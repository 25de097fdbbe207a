//! Is the candidate right?

use super::Evaluation;
use super::case::Case;
use super::draws::DrawRuns;
use super::extremes::Extremes;
use super::spent::timed;
use crate::number::Number;
use crate::tolerance::{BASELINE, Ladder};
use crate::verdict::{Verdict, VerdictKind};
use passnet_engine::Tier;
use passnet_engine::native::{Tensor, TensorError};
use serde::{Deserialize, Serialize};

/// One question beyond the reference's, and its answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Check {
    pub name: String,
    pub outcome: CheckOutcome,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub detail: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CheckOutcome {
    Passed,
    Failed,
    /// Failed, but only advice.
    Advice,
    /// The question makes no sense here.
    Skipped,
}

/// What the first draw shows about one output.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OutputSummary {
    pub dtype: String,
    pub equal: bool,
    /// By the tolerances of float16, bfloat16, float32, float64.
    pub ladders: [Ladder; 4],
    pub max_error: Number,
    pub mean_error: Number,
}

/// Verifies a case and writes what it finds into the evaluation. Gives what `beside` found, which may be done at the same
/// time; passes that did not run as plans are not asked.
pub(super) fn verify<B: Send>(
    case: &Case,
    evaluation: &mut Evaluation,
    beside: Option<impl FnOnce() -> B + Send>,
) -> Result<Option<B>, Box<Verdict>> {
    let mut spent = evaluation.spent;
    // Calls come first, one after the other; looking at what they gave takes all threads.
    let drawn = own_time(case, &mut spent.look, || DrawRuns::call(case))?;
    let extremes = (case.is_rewritten && case.thorough)
        .then(|| own_time(case, &mut spent.stress, || Extremes::call(case, drawn.output_bytes())));
    let beside = beside.filter(|_| case.candidate.tier() == Tier::Plan);
    let (compared, (beside, extremes)) = timed(&mut spent.look, || {
        // What takes longest begins first.
        let others =
            || rayon::join(|| beside.map(|beside| beside()), || extremes.map(Extremes::look));
        rayon::join(|| drawn.look(evaluation), others)
    });
    evaluation.spent = spent;
    let mut compared = compared?;
    // Whatever level scores must be right on extreme inputs, too.
    if let (Some(level), Some(extremes)) = (scoring_level(compared.ladder), extremes)
        && let Some(verdict) = extremes.conclude(level, evaluation)?
    {
        compared.wrong = Some(verdict);
        compared.ladder = Ladder::NONE;
    }
    evaluation.judged.ladder = compared.ladder;
    evaluation.judged.verdict =
        compared.wrong.unwrap_or_else(|| Verdict::new(VerdictKind::Correct));
    Ok(beside)
}

/// The level that everything beyond ordinary inputs is asked at: the baseline, or the first level that is right where the
/// baseline is not; `None` where no level is.
pub(super) fn scoring_level(ladder: Ladder) -> Option<i32> {
    ladder.first_right().map(|level| level.max(BASELINE))
}

/// Does work and adds its seconds to a stage, calls of the two sides left out.
fn own_time<R>(case: &Case, stage: &mut f64, work: impl FnOnce() -> R) -> R {
    let before = case.calls().seconds;
    let result = timed(stage, work);
    *stage -= case.calls().seconds - before;
    result
}

/// The harness itself could not get at the data.
pub(super) fn no_memory(error: &TensorError) -> Box<Verdict> {
    Box::new(Verdict::new(VerdictKind::ReferenceFail).because(error.to_string()))
}

/// The first output that is not the same in every bit.
pub(super) fn first_difference(
    one: &[Tensor],
    two: &[Tensor],
) -> Result<Option<usize>, Box<Verdict>> {
    if one.len() != two.len() {
        return Ok(Some(one.len().min(two.len())));
    }
    for (index, (one, two)) in one.iter().zip(two).enumerate() {
        if !one.same_bits(two).map_err(|error| no_memory(&error))? {
            return Ok(Some(index));
        }
    }
    Ok(None)
}

pub(super) fn passed(name: &str) -> Check {
    Check { name: name.into(), outcome: CheckOutcome::Passed, detail: String::new() }
}
