//! What became of one graph: the one type that the command line, the run store, the agent's feedback, the exports
//! and the web page all use, and the one table that says how each verdict counts in ES(t).

use crate::number::Number;
use serde::{Deserialize, Serialize};
use std::fmt;

/// One word for what became of a graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum VerdictKind {
    /// Ran, and every output is right at the baseline tolerance.
    Correct,
    /// Ran, and some output is wrong at the baseline tolerance. It may be right at a looser one.
    Accuracy,
    /// An output has another element type than eager's.
    DtypeMismatch,
    /// An output has another shape than eager's, or there are more or fewer outputs.
    ShapeMismatch,
    /// The rewritten graph started and failed: an exception, an illegal access, a dead process.
    RuntimeFail,
    /// The rewritten graph could not be built or compiled.
    CompileFail,
    /// No pass changed the graph.
    NoMatch,
    /// A rule against cheating was broken.
    Integrity,
    /// The engine or the format lacks what this graph or pass needs.
    Unsupported,
    /// Did not finish in the time it was given.
    Timeout,
    /// Repeated or timed calls give other results than the first. In logs of the reference also: timings that do not agree.
    Unstable,
    /// Eager itself failed, so there is nothing to compare with.
    ReferenceFail,
}

/// How a failure counts in ES(t): from which t on it is forgiven (scored 1 instead of b).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorClass {
    /// Wrong numbers: forgiven from t = 1.
    Accuracy,
    /// Did not produce comparable outputs: forgiven from t = 3.
    Execution,
    /// Never forgiven.
    Never,
}

impl ErrorClass {
    /// The first t at which the failure is forgiven.
    pub const fn tolerated_from(self) -> Option<i32> {
        match self {
            ErrorClass::Accuracy => Some(1),
            ErrorClass::Execution => Some(3),
            ErrorClass::Never => None,
        }
    }

    pub(crate) fn is_tolerated_at(self, t: i32) -> bool {
        self.tolerated_from().is_some_and(|from| t >= from)
    }
}

/// The words the reference derives from a graph's part of a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs, reason = "a table of the reference's words")]
pub enum ReferenceStatus {
    Correct,
    EagerFail,
    CompileFail,
    ShapeMismatch,
    TypeMismatch,
    RuntimeFail,
    PassMiss,
}

impl ReferenceStatus {
    /// The reference's word.
    pub const fn name(self) -> &'static str {
        match self {
            ReferenceStatus::Correct => "correct",
            ReferenceStatus::EagerFail => "eager_fail",
            ReferenceStatus::CompileFail => "compile_fail",
            ReferenceStatus::ShapeMismatch => "shape_mismatch",
            ReferenceStatus::TypeMismatch => "type_mismatch",
            ReferenceStatus::RuntimeFail => "runtime_fail",
            ReferenceStatus::PassMiss => "pass_miss",
        }
    }

    /// The class of a failure with this status. A graph whose status is `correct` can still fail by accuracy.
    pub const fn class(self) -> ErrorClass {
        match self {
            ReferenceStatus::Correct => ErrorClass::Accuracy,
            ReferenceStatus::EagerFail => ErrorClass::Never,
            ReferenceStatus::CompileFail
            | ReferenceStatus::ShapeMismatch
            | ReferenceStatus::TypeMismatch
            | ReferenceStatus::RuntimeFail
            | ReferenceStatus::PassMiss => ErrorClass::Execution,
        }
    }
}

impl fmt::Display for ReferenceStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// One row of the table: how a verdict counts here, and what the reference makes of the same situation.
#[derive(Debug, Clone, Copy)]
pub struct Classification {
    /// How a failure counts here.
    pub strict: ErrorClass,
    /// What the reference would say.
    pub reference: ReferenceStatus,
    /// Why the two differ, or why this class.
    pub why: &'static str,
}

impl VerdictKind {
    /// `correct` first, then the ways to fail.
    pub const ALL: [VerdictKind; 12] = [
        VerdictKind::Correct,
        VerdictKind::Accuracy,
        VerdictKind::DtypeMismatch,
        VerdictKind::ShapeMismatch,
        VerdictKind::RuntimeFail,
        VerdictKind::CompileFail,
        VerdictKind::NoMatch,
        VerdictKind::Integrity,
        VerdictKind::Unsupported,
        VerdictKind::Timeout,
        VerdictKind::Unstable,
        VerdictKind::ReferenceFail,
    ];

    /// The word that users see.
    pub const fn name(self) -> &'static str {
        match self {
            VerdictKind::Correct => "correct",
            VerdictKind::Accuracy => "accuracy",
            VerdictKind::DtypeMismatch => "dtype_mismatch",
            VerdictKind::ShapeMismatch => "shape_mismatch",
            VerdictKind::RuntimeFail => "runtime_fail",
            VerdictKind::CompileFail => "compile_fail",
            VerdictKind::NoMatch => "no_match",
            VerdictKind::Integrity => "integrity",
            VerdictKind::Unsupported => "unsupported",
            VerdictKind::Timeout => "timeout",
            VerdictKind::Unstable => "unstable",
            VerdictKind::ReferenceFail => "reference_fail",
        }
    }

    /// Did both sides run and give outputs that can be compared number by number?
    pub const fn is_comparable(self) -> bool {
        matches!(self, VerdictKind::Correct | VerdictKind::Accuracy)
    }

    /// THE table of verdicts and error classes; nothing else decides what a verdict is worth.
    pub const fn classification(self) -> Classification {
        use ErrorClass::{Accuracy, Execution, Never};
        use ReferenceStatus as R;
        let (strict, reference, why) = match self {
            VerdictKind::Correct | VerdictKind::Accuracy => {
                (Accuracy, R::Correct, "judged level by level in both")
            }
            VerdictKind::DtypeMismatch => (
                Execution,
                R::ShapeMismatch,
                "the reference stops before it compares and sees no shape line",
            ),
            VerdictKind::ShapeMismatch => (
                Execution,
                R::ShapeMismatch,
                "the reference calls it correct where the shapes happen to broadcast",
            ),
            VerdictKind::RuntimeFail => (
                Execution,
                R::EagerFail,
                "the reference prints nothing after an exception and takes the silence for an eager failure",
            ),
            VerdictKind::CompileFail => (
                Execution,
                R::EagerFail,
                "the reference prints nothing after an exception and takes the silence for an eager failure",
            ),
            VerdictKind::NoMatch => (
                Execution,
                R::EagerFail,
                "a pass that matches nothing raises in the reference, which then reports an eager failure",
            ),
            VerdictKind::Integrity => {
                (Never, R::EagerFail, "an attempt to cheat is never forgiven")
            }
            VerdictKind::Unsupported => (
                Execution,
                R::EagerFail,
                "counted, never left out: a graph must not vanish because it is hard to run",
            ),
            VerdictKind::Timeout => (
                Execution,
                R::EagerFail,
                "the reference has no time limit per graph; a killed process leaves no result lines",
            ),
            VerdictKind::Unstable => (
                Execution,
                R::EagerFail,
                "the reference's noise gate raises, which counts as an eager failure",
            ),
            VerdictKind::ReferenceFail => {
                (Never, R::EagerFail, "there is nothing to compare with, in both")
            }
        };
        Classification { strict, reference, why }
    }
}

impl fmt::Display for VerdictKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What became of a graph, and how we know.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Verdict {
    /// The one word.
    #[serde(rename = "verdict")]
    pub kind: VerdictKind,
    /// Why, fact by fact.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub evidence: Vec<Evidence>,
}

/// One fact behind a verdict.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[allow(missing_docs, reason = "each variant says what its fields are about")]
pub enum Evidence {
    /// Numbers of one output differ.
    Values(Box<ValueEvidence>),
    /// One output has another element type.
    Dtype { output: usize, expected: String, actual: String },
    /// One output has another shape.
    Shape { output: usize, expected: Vec<usize>, actual: Vec<usize> },
    /// There are more or fewer outputs.
    OutputCount { expected: usize, actual: usize },
    /// A node of the graph that failed, was not matched or is not supported.
    Node { node: String, message: String },
    /// A rule that a file breaks.
    Rule { rule: String, file: String, line: usize, message: String },
    /// A line of a log.
    LogLine { line: usize, text: String },
    /// Anything that needs only words.
    Message { text: String },
}

/// Where and how far the values of one output are off.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ValueEvidence {
    /// Counted from 0.
    pub output: usize,
    /// That of the output.
    pub dtype: String,
    /// Elements compared.
    pub elements: usize,
    /// Elements that are not equal.
    pub unequal: usize,
    /// Elements outside the baseline tolerance.
    pub wrong: usize,
    /// The first element outside the baseline tolerance.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_wrong: Option<ElementPair>,
    /// The largest difference.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worst_absolute: Option<WorstError>,
    /// The largest difference, as a multiple of what was expected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worst_relative: Option<WorstError>,
    /// NaNs that eager gave.
    pub nan_expected: usize,
    /// NaNs that the candidate gave.
    pub nan_actual: usize,
}

/// Two values at one place. Values are text because JSON has neither NaN nor exact 64-bit integers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ElementPair {
    /// One number for each dimension.
    pub index: Vec<usize>,
    /// Eager's value, as text.
    pub expected: String,
    /// The candidate's value, as text.
    pub actual: String,
}

/// The largest error of its kind and where it is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WorstError {
    /// How large it is.
    pub error: Number,
    /// Where.
    #[serde(flatten)]
    pub at: ElementPair,
}

impl Verdict {
    /// Without evidence.
    pub fn new(kind: VerdictKind) -> Self {
        Verdict { kind, evidence: Vec::new() }
    }

    /// Adds evidence after what there is.
    #[must_use]
    pub fn with(mut self, evidence: Evidence) -> Self {
        self.evidence.push(evidence);
        self
    }

    /// Adds a sentence as evidence.
    #[must_use]
    pub fn because(self, text: impl Into<String>) -> Self {
        self.with(Evidence::Message { text: text.into() })
    }
}

impl fmt::Display for Evidence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Evidence::Values(v) => v.fmt(f),
            Evidence::Dtype { output, expected, actual } => {
                write!(f, "output {output} is {actual}, expected {expected}")
            }
            Evidence::Shape { output, expected, actual } => {
                write!(f, "output {output} has shape {actual:?}, expected {expected:?}")
            }
            Evidence::OutputCount { expected, actual } => {
                write!(f, "{actual} outputs, expected {expected}")
            }
            Evidence::Node { node, message } => write!(f, "node `{node}`: {message}"),
            Evidence::Rule { rule, file, line, message } => {
                write!(f, "{file}:{line}: {message} [{rule}]")
            }
            Evidence::LogLine { line, text } => write!(f, "log line {line}: {text}"),
            Evidence::Message { text } => f.write_str(text),
        }
    }
}

impl fmt::Display for ValueEvidence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "output {}: {} of {} elements wrong", self.output, self.wrong, self.elements)?;
        if let Some(first) = &self.first_wrong {
            write!(
                f,
                ", first at {:?}: {}, expected {}",
                first.index, first.actual, first.expected
            )?;
        }
        if let Some(worst) = &self.worst_absolute {
            write!(f, "; worst error {} at {:?}", worst.error, worst.at.index)?;
        }
        Ok(())
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.kind.fmt(f)?;
        for (i, evidence) in self.evidence.iter().enumerate() {
            write!(f, "{}{evidence}", if i == 0 { ": " } else { "; " })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_in_full() {
        let rows: Vec<String> = VerdictKind::ALL
            .iter()
            .map(|kind| {
                let c = kind.classification();
                let from = c.strict.tolerated_from().map_or("never".into(), |t| t.to_string());
                format!("{kind} {from} {}", c.reference)
            })
            .collect();
        let expected = [
            "correct 1 correct",
            "accuracy 1 correct",
            "dtype_mismatch 3 shape_mismatch",
            "shape_mismatch 3 shape_mismatch",
            "runtime_fail 3 eager_fail",
            "compile_fail 3 eager_fail",
            "no_match 3 eager_fail",
            "integrity never eager_fail",
            "unsupported 3 eager_fail",
            "timeout 3 eager_fail",
            "unstable 3 eager_fail",
            "reference_fail never eager_fail",
        ];
        assert_eq!(rows, expected);
    }

    #[test]
    fn names_are_the_json_names() {
        for kind in VerdictKind::ALL {
            let json = serde_json::to_string(&kind).unwrap();
            assert_eq!(json, format!("\"{}\"", kind.name()));
        }
    }

    #[test]
    fn evidence_survives_json_and_reads_as_a_sentence() {
        let pair = ElementPair { index: vec![1, 2], expected: "nan".into(), actual: "0.5".into() };
        let verdict = Verdict::new(VerdictKind::Accuracy)
            .with(Evidence::Values(Box::new(ValueEvidence {
                output: 0,
                dtype: "float32".into(),
                elements: 6,
                unequal: 2,
                wrong: 1,
                first_wrong: Some(pair.clone()),
                worst_absolute: Some(WorstError { error: Number(f64::NAN), at: pair }),
                worst_relative: None,
                nan_expected: 1,
                nan_actual: 0,
            })))
            .because("and more");
        let json = serde_json::to_string(&verdict).unwrap();
        assert_eq!(serde_json::from_str::<Verdict>(&json).unwrap(), verdict);
        assert_eq!(
            verdict.to_string(),
            "accuracy: output 0: 1 of 6 elements wrong, first at [1, 2]: 0.5, expected nan; \
             worst error nan at [1, 2]; and more"
        );
    }
}
