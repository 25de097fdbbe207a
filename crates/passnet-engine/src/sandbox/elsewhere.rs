//! Other systems than Linux on x86-64 and 64-bit ARM: nothing runs.

use super::{Finished, Job, Layers, Limits, Refusal};
use std::io::{PipeReader, PipeWriter};

pub(super) fn landlock_version() -> Option<u32> {
    None
}

#[derive(Debug)]
pub(super) struct Program;

impl Program {
    pub(super) fn new(_: &Job, _: &Layers) -> Result<Program, Refusal> {
        Err(refusal())
    }

    pub(super) fn trial(_: &Layers) -> Result<Program, Refusal> {
        Err(refusal())
    }
}

pub(super) fn run(_: &Program, _: &[u8], _: Limits) -> Result<Finished, Refusal> {
    Err(refusal())
}

/// No program runs.
#[derive(Debug)]
pub(super) struct Running;

impl Running {
    pub(super) fn end(&mut self) -> Option<Result<Finished, Refusal>> {
        None
    }
}

pub(super) fn start_session(
    _: &Program,
    _: Limits,
) -> Result<(Running, PipeWriter, PipeReader), Refusal> {
    Err(refusal())
}

fn refusal() -> Refusal {
    Refusal {
        layer: "namespaces",
        reason: "only Linux on x86-64 and 64-bit ARM has them".into(),
        hint: "run passnet in a Linux virtual machine",
    }
}
