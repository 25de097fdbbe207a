//! What stopped a pass: the layer that a verdict comes from.

use crate::verdict::{Evidence, Verdict, VerdictKind};
use serde::{Deserialize, Serialize};
use std::fmt;

/// The layers of defence, in the order in which a pass meets them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Layer {
    /// A static integrity rule refuses the text.
    Rules,
    /// The folder, the pattern or the wrapper's name cannot be read as a pass.
    Read,
    /// Nothing is replaced.
    Match,
    /// Replacing does not come to an end.
    Rewrite,
    /// The wrapper leaves the subset that is evaluated on shapes alone, or a kernel is no kernel.
    Plan,
    /// The kernels read or write what they must not, race, or leave outputs unwritten.
    Check,
    /// A launch fails, or takes more than it may.
    Run,
    /// What came out, or what became of the inputs, is not what eager gives.
    Verify,
}

impl Layer {
    /// In the order in which a pass meets them.
    pub const ALL: [Layer; 8] = [
        Layer::Rules,
        Layer::Read,
        Layer::Match,
        Layer::Rewrite,
        Layer::Plan,
        Layer::Check,
        Layer::Run,
        Layer::Verify,
    ];

    /// As it stands in `case.json`.
    pub const fn name(self) -> &'static str {
        match self {
            Layer::Rules => "rules",
            Layer::Read => "read",
            Layer::Match => "match",
            Layer::Rewrite => "rewrite",
            Layer::Plan => "plan",
            Layer::Check => "check",
            Layer::Run => "run",
            Layer::Verify => "verify",
        }
    }

    /// What the layer does.
    pub const fn about(self) -> &'static str {
        match self {
            Layer::Rules => {
                "a static integrity rule refuses the text (`passnet pass check --rules` lists them)"
            }
            Layer::Read => "the folder or the pattern cannot be read as a pass",
            Layer::Match => "nothing is replaced",
            Layer::Rewrite => "replacing it does not come to an end",
            Layer::Plan => {
                "the wrapper leaves the subset that is evaluated on shapes alone, or a kernel is no kernel"
            }
            Layer::Check => {
                "the kernels read or write what they must not, race, or leave outputs unwritten"
            }
            Layer::Run => "a launch fails, or takes more than it may",
            Layer::Verify => {
                "outputs and inputs are compared with eager's: values, types, layout, shared memory, at every call"
            }
        }
    }

    /// The layer that gave a verdict; `None` where nothing stopped the pass, or nobody judged it.
    pub fn of(verdict: &Verdict) -> Option<Layer> {
        let evidence = verdict.evidence.first();
        // Failing at extreme inputs or at sizes that were promised, in whatever way, is found by verifying.
        if matches!(evidence, Some(Evidence::Message { text }) if text.starts_with("with ")) {
            return Some(Layer::Verify);
        }
        match verdict.kind {
            VerdictKind::Integrity => Some(Layer::Rules),
            VerdictKind::NoMatch => Some(Layer::Match),
            VerdictKind::Timeout => Some(Layer::Run),
            VerdictKind::CompileFail => match evidence {
                Some(Evidence::Node { .. }) => Some(Layer::Plan),
                Some(Evidence::Message { text }) if text.contains("does not come to an end") => {
                    Some(Layer::Rewrite)
                }
                _ => Some(Layer::Read),
            },
            VerdictKind::RuntimeFail => match evidence {
                Some(Evidence::Rule { .. }) => Some(Layer::Check),
                Some(Evidence::Node { .. }) => Some(Layer::Run),
                _ => Some(Layer::Verify),
            },
            VerdictKind::Accuracy
            | VerdictKind::DtypeMismatch
            | VerdictKind::ShapeMismatch
            | VerdictKind::Unstable => Some(Layer::Verify),
            // Whatever else there is to say about a graph, it is not that a layer stopped the pass.
            _ => None,
        }
    }
}

impl fmt::Display for Layer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_verdict_names_the_layer_that_gave_it() {
        let of =
            |kind: VerdictKind, evidence: Evidence| Layer::of(&Verdict::new(kind).with(evidence));
        let node = || Evidence::Node { node: "tmp_0".into(), message: "no".into() };
        let message = |text: &str| Evidence::Message { text: text.into() };
        let rule = || Evidence::Rule {
            rule: "race".into(),
            file: "a.py".into(),
            line: 1,
            message: "no".into(),
        };
        assert_eq!(of(VerdictKind::Integrity, rule()), Some(Layer::Rules));
        assert_eq!(of(VerdictKind::CompileFail, message("no such file")), Some(Layer::Read));
        assert_eq!(
            of(VerdictKind::CompileFail, message("pass `a` does not come to an end on this graph")),
            Some(Layer::Rewrite)
        );
        assert_eq!(of(VerdictKind::CompileFail, node()), Some(Layer::Plan));
        assert_eq!(of(VerdictKind::RuntimeFail, rule()), Some(Layer::Check));
        assert_eq!(of(VerdictKind::RuntimeFail, node()), Some(Layer::Run));
        assert_eq!(of(VerdictKind::RuntimeFail, message("changed")), Some(Layer::Verify));
        assert_eq!(of(VerdictKind::Unstable, message("differs")), Some(Layer::Verify));
        let sizes = || message("with sizes one larger (S0=2)");
        assert_eq!(of(VerdictKind::CompileFail, sizes()), Some(Layer::Verify));
        assert_eq!(of(VerdictKind::Unsupported, node()), None, "nobody judged it");
        assert_eq!(Layer::of(&Verdict::new(VerdictKind::Correct)), None);
    }
}
