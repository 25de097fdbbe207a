//! Failures as verdicts: who failed decides what an error means.

use crate::verdict::{Evidence, Verdict, VerdictKind};
use passnet_engine::native::TensorError;
use passnet_engine::{EngineError, ErrorKind};

/// Eager failed.
pub(super) fn eager_failure(error: EngineError) -> Box<Verdict> {
    let kind = match error.kind {
        ErrorKind::Unsupported => VerdictKind::Unsupported,
        _ => VerdictKind::ReferenceFail,
    };
    failure(kind, &error)
}

/// The candidate failed.
pub(super) fn candidate_failure(error: EngineError) -> Box<Verdict> {
    let kind = match error.kind {
        ErrorKind::Unsupported => VerdictKind::Unsupported,
        ErrorKind::Plan => VerdictKind::CompileFail,
        ErrorKind::Timeout => VerdictKind::Timeout,
        _ => VerdictKind::RuntimeFail,
    };
    failure(kind, &error)
}

fn failure(kind: VerdictKind, error: &EngineError) -> Box<Verdict> {
    let evidence = match error.node.is_empty() {
        true => Evidence::Message { text: error.to_string() },
        false => Evidence::Node { node: error.node.clone(), message: error.message.clone() },
    };
    Box::new(Verdict::new(kind).with(evidence))
}

/// The harness itself could not read or make a tensor.
pub(super) fn harness_failure(error: TensorError) -> Box<Verdict> {
    Box::new(Verdict::new(VerdictKind::ReferenceFail).because(error.to_string()))
}
