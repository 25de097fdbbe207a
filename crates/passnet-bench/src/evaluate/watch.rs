//! Do the candidate's kernels touch only what they may?

use super::case::Case;
use super::failure::candidate_failure;
use crate::verdict::{Evidence, Verdict, VerdictKind};
use passnet_kernel::check::Severity;

/// Runs the kernels under watch on any draw, as it is or with extreme values in it; what they touch wrongly is a failure
/// even where the numbers came out right. Gives what is worth a remark.
pub(super) fn watch_kernels(case: &Case) -> Result<Vec<Evidence>, Box<Verdict>> {
    let mut dice = case.secret.dice("watched draw");
    let draw = &case.draws[dice.below(case.draws.len())];
    let inputs = case.inputs_for_eager(draw)?;
    let findings =
        case.sides.candidate.check(&inputs, &case.run_options()).map_err(candidate_failure)?;
    let (mut errors, mut remarks) = (Vec::new(), Vec::new());
    for finding in findings {
        let is_error = finding.severity == Severity::Error;
        let evidence = Evidence::Rule {
            rule: finding.rule.into(),
            file: finding.file,
            line: finding.line as usize,
            message: finding.message,
        };
        if is_error { errors.push(evidence) } else { remarks.push(evidence) }
    }
    match errors.is_empty() {
        true => Ok(remarks),
        false => Err(Box::new(Verdict { kind: VerdictKind::RuntimeFail, evidence: errors })),
    }
}
