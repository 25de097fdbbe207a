//! What the reference looks for in the lines of a graph: substring tests, and an order of decisions.

use crate::verdict::ReferenceStatus;

/// The six facts the reference derives from the lines of a graph.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct ReferenceFlags {
    eager_ok: bool,
    compile_ok: bool,
    shape_ok: bool,
    type_ok: bool,
    pass_miss: bool,
    runtime_fail: bool,
}

impl ReferenceFlags {
    pub(super) fn see(&mut self, line: &str) {
        let matched =
            |tag: &str| line.find(tag).is_some_and(|at| line[at..].contains("match:True"));
        if line.contains("[Datatype][eager]") {
            self.eager_ok = true;
        } else if line.contains("[Datatype][compiled]") {
            self.compile_ok = true;
        } else if matched("[Shape]") {
            self.shape_ok = true;
        } else if matched("[DataType]") {
            self.type_ok = true;
        } else if line.contains("all_close") {
            self.shape_ok = true;
            self.eager_ok = true;
            self.compile_ok = true;
        } else if line.contains("No passes modified") {
            self.pass_miss = true;
        }
        if line.contains("Exception:") || line.contains("Error:") {
            self.runtime_fail = true;
        }
    }

    pub(super) fn status(self) -> ReferenceStatus {
        if !self.eager_ok {
            ReferenceStatus::EagerFail
        } else if !self.compile_ok {
            ReferenceStatus::CompileFail
        } else if !self.shape_ok {
            ReferenceStatus::ShapeMismatch
        } else if !self.type_ok {
            ReferenceStatus::TypeMismatch
        } else if self.runtime_fail {
            ReferenceStatus::RuntimeFail
        } else if self.pass_miss {
            ReferenceStatus::PassMiss
        } else {
            ReferenceStatus::Correct
        }
    }
}
