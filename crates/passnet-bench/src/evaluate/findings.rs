//! What the parts of verification find, as values that are put together.

use super::check::Check;
use super::oracle::Accuracy;
use super::pair::OutputSummary;
use crate::tolerance::Ladder;
use crate::verdict::{Evidence, Verdict};

/// What a part of verification found.
#[derive(Debug)]
pub(super) struct Findings {
    /// What the first draw shows.
    pub(super) outputs: Vec<OutputSummary>,
    pub(super) accuracy: Option<Accuracy>,
    pub(super) checks: Vec<Check>,
    /// What was noticed but changes nothing.
    pub(super) remarks: Vec<Evidence>,
    /// The levels at which everything was right.
    pub(super) ladder: Ladder,
    /// What is wrong.
    pub(super) verdict: Option<Verdict>,
    /// Whether the evaluation ends with that verdict.
    pub(super) is_final: bool,
}

impl Default for Findings {
    /// Nothing is wrong.
    fn default() -> Self {
        Findings {
            outputs: Vec::new(),
            accuracy: None,
            checks: Vec::new(),
            remarks: Vec::new(),
            ladder: Ladder::ALL,
            verdict: None,
            is_final: false,
        }
    }
}

impl Findings {
    /// These findings, and a verdict that ends the evaluation.
    pub(super) fn end(self, verdict: Verdict) -> Findings {
        Findings { verdict: Some(verdict), is_final: true, ..self }
    }

    /// Adds what the next part finds, which is asked at the levels that are right so far; its verdict counts more.
    pub(super) fn then(mut self, next: impl FnOnce(Ladder) -> Findings) -> Findings {
        if self.is_final {
            return self;
        }
        let next = next(self.ladder);
        self.outputs.extend(next.outputs);
        self.checks.extend(next.checks);
        self.remarks.extend(next.remarks);
        Findings {
            accuracy: self.accuracy.or(next.accuracy),
            ladder: self.ladder.and(next.ladder),
            verdict: next.verdict.or(self.verdict),
            is_final: next.is_final,
            ..self
        }
    }
}

impl From<Result<Findings, Box<Verdict>>> for Findings {
    fn from(result: Result<Findings, Box<Verdict>>) -> Findings {
        result.unwrap_or_else(|verdict| Findings::default().end(*verdict))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verdict::VerdictKind;

    fn found(check: &str, from: i32, verdict: Option<VerdictKind>) -> Findings {
        Findings {
            checks: vec![Check::passed(check)],
            ladder: Ladder::right_from(from),
            verdict: verdict.map(Verdict::new),
            ..Findings::default()
        }
    }

    #[test]
    fn parts_are_put_together_in_order_and_the_last_verdict_counts() {
        let all = found("one", -7, Some(VerdictKind::Accuracy)).then(|ladder| {
            assert_eq!(ladder, Ladder::right_from(-7), "the next part hears what is right so far");
            found("two", -3, Some(VerdictKind::RuntimeFail))
        });
        let names: Vec<&str> = all.checks.iter().map(|check| &*check.name).collect();
        assert_eq!(names, ["one", "two"]);
        assert_eq!(all.ladder, Ladder::right_from(-3));
        assert_eq!(all.verdict.as_ref().map(|it| it.kind), Some(VerdictKind::RuntimeFail));
        let kept = all.then(|_| found("three", -10, None));
        assert_eq!(kept.verdict.map(|it| it.kind), Some(VerdictKind::RuntimeFail));
    }

    #[test]
    fn nothing_is_asked_after_the_end() {
        let ended = found("one", -5, None).end(Verdict::new(VerdictKind::Timeout));
        let ended = ended.then(|_| panic!("the evaluation has ended"));
        assert!(ended.is_final && ended.checks.len() == 1);
    }
}
