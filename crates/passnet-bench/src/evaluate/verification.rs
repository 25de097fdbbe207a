//! Is the candidate right?

use super::case::Case;
use super::check::Check;
use super::draws::DrawRuns;
use super::extremes::Extremes;
use super::findings::Findings;
use super::other_shapes::OtherShapes;
use super::overhead::{Overhead, timed};
use crate::verdict::{Evidence, Verdict};
use passnet_engine::{Tier, TunedKernel};

/// What is said of a graph whose passes ran in the compatibility tier.
const UNTIMED: &str = "compatibility tier: ran in a sandboxed PyTorch, compared by the trusted side; kernels not \
    watched, not timed, not scored";

/// What verification found.
#[derive(Debug, Default)]
pub(super) struct Verification {
    pub(super) findings: Findings,
    pub(super) overhead: Overhead,
    /// How the code of the passes ran.
    pub(super) tier: Tier,
    pub(super) tuned: Vec<TunedKernel>,
}

impl Verification {
    /// Whether a race would mean anything. A process that keeps running between calls may keep results, too: the speed of
    /// the compatibility tier means nothing.
    pub(super) fn allows_timing(&self) -> bool {
        !self.findings.is_final && self.tier == Tier::Plan
    }
}

/// What the kernels do at other sizes, and what they touch.
#[derive(Debug)]
pub(super) struct KernelChecks {
    pub(super) other_shapes: OtherShapes,
    pub(super) watched: Result<Vec<Evidence>, Box<Verdict>>,
}

/// Verifies a case. `kernel_checks` may be done at the same time; passes that did not run as plans are not asked.
pub(super) fn verify(
    case: &Case,
    kernel_checks: Option<impl FnOnce() -> KernelChecks + Send>,
) -> Verification {
    let mut overhead = Overhead::default();
    let findings = find(case, kernel_checks, &mut overhead).into();
    let candidate = &case.sides.candidate;
    Verification { findings, overhead, tier: candidate.tier(), tuned: candidate.tuned() }
}

fn find(
    case: &Case,
    kernel_checks: Option<impl FnOnce() -> KernelChecks + Send>,
    overhead: &mut Overhead,
) -> Result<Findings, Box<Verdict>> {
    // Calls come first, one after the other; looking at what they gave takes all threads.
    let drawn = own_time(case, &mut overhead.look, || DrawRuns::call(case))?;
    let extremes = (case.sides.subject.has_passes() && case.thorough).then(|| {
        own_time(case, &mut overhead.stress, || Extremes::call(case, drawn.output_bytes()))
    });
    let tier = case.sides.candidate.tier();
    let kernel_checks = kernel_checks.filter(|_| tier == Tier::Plan);
    let (compared, (kernel_checks, extremes)) = timed(&mut overhead.look, || {
        // What takes longest begins first.
        let others =
            || rayon::join(|| kernel_checks.map(|check| check()), || extremes.map(Extremes::look));
        rayon::join(|| drawn.look(), others)
    });
    // Whatever level scores must be right on extreme inputs, too.
    let found = compared?.then(|ladder| match (ladder.scoring_level(), extremes) {
        (Some(level), Some(extremes)) => extremes.conclude(level),
        _ => Findings::default(),
    });
    Ok(match kernel_checks {
        Some(KernelChecks { other_shapes, watched }) => {
            found.then(|_| watched.map(of_watched).into()).then(|ladder| {
                ladder
                    .scoring_level()
                    .map_or_else(Findings::default, |level| other_shapes.conclude(level))
            })
        }
        None if tier == Tier::Compat => found.then(|_| Findings {
            remarks: vec![Evidence::Message { text: UNTIMED.into() }],
            ..Findings::default()
        }),
        None => found,
    })
}

/// What kernels under watch showed, where they did nothing wrong.
fn of_watched(remarks: Vec<Evidence>) -> Findings {
    let check = Check::passed("kernels stay inside their memory, without races");
    Findings { checks: vec![check], remarks, ..Findings::default() }
}

/// Does work and adds its seconds to a stage, calls of the two sides left out.
fn own_time<R>(case: &Case, stage: &mut f64, work: impl FnOnce() -> R) -> R {
    let before = case.calls().seconds;
    let result = timed(stage, work);
    *stage -= case.calls().seconds - before;
    result
}
