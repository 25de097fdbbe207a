//! What is said about a log: what was noticed, and where the two ways of scoring disagree.

use crate::verdict::{ReferenceStatus, VerdictKind};
use serde::Serialize;

/// Something about a log that deserves a look but changes no score by itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// Where it is about one graph.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub graph: Option<String>,
    /// In the log, counted from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<usize>,
    /// One sentence for people.
    pub text: String,
}

/// Why the two ways of scoring disagree about a graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum DifferenceKind {
    /// The reference gives a failure the wrong name, and with it the wrong class.
    Misclassified,
    /// Text of something else counts as the graph's failure.
    StrayError,
    /// A noisy measurement counts as a failure that is never forgiven.
    NoiseGate,
    /// A wrong shape passes because it broadcasts.
    BroadcastShape,
    /// An empty output breaks the reference's own summary.
    EmptyOutput,
    /// Lines that the harness cannot have printed.
    ForgedLine,
    /// The log stops in the middle of a graph.
    Truncated,
    /// A graph of the list is not in the log; the reference leaves it out of the mean.
    Vanished,
    /// A graph of the log is not in the list.
    Unlisted,
    /// One graph stands twice in the log; the reference counts both.
    Repeated,
    /// A candidate is wrong, or needs another tolerance, on inputs the reference does not try.
    OtherInputs,
    /// A candidate outside eager's tolerance is as close to the float64 result as eager.
    Yardstick,
}

/// One graph that the two ways of scoring see differently.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// As the log names it.
    pub graph: String,
    /// What makes the two judgements differ.
    pub kind: DifferenceKind,
    /// The reference's status; `None` where the reference does not know the graph.
    pub reference: Option<ReferenceStatus>,
    /// Our verdict; `None` where the graph does not count.
    pub strict: Option<VerdictKind>,
    /// One sentence with the numbers.
    pub reason: String,
}
