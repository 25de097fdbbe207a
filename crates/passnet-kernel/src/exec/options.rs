//! How to run.

use passnet_cpu::threads;
use std::time::Instant;

/// Loop iterations one program may run unless the caller says otherwise.
const MAX_ITERATIONS: u64 = 1 << 28;

/// How a plan is run.
#[derive(Debug, Clone, Copy)]
pub struct RunOptions {
    /// Threads to use at most; results do not depend on it.
    pub threads: usize,
    /// Loop iterations one program may run.
    pub iterations: u64,
    /// When to give up.
    pub deadline: Option<Instant>,
    /// Whether to do without machine code, which gives the same bits sooner.
    pub interpret: bool,
    /// What decides in which order the programs of each launch run. Drawn for every run where it is not given: no kernel can
    /// know it.
    pub order: Option<u64>,
}

impl Default for RunOptions {
    fn default() -> Self {
        RunOptions {
            threads: threads(),
            iterations: MAX_ITERATIONS,
            deadline: None,
            interpret: false,
            order: None,
        }
    }
}
