//! How tasks are solved.

use std::path::PathBuf;

/// What the solver may do and how long.
#[derive(Debug, Clone, PartialEq)]
pub struct SolveOptions {
    /// Whether to measure; without, every group becomes a pass with the usual choice.
    pub tune: bool,
    /// Seconds of timing for one choice.
    pub seconds: f64,
    /// Seconds after which no further choice of a task is measured, where there is a limit: what is not measured then has the usual
    /// choice, and is still raced with the whole graphs.
    pub tune_seconds: Option<f64>,
    /// Where times of choices are kept: the same kernel in the same graph on the same device is measured once.
    pub measurements: Option<PathBuf>,
    /// Passes of one task.
    pub most_passes: usize,
    /// Characters of all passes together, where there is a limit: a small model that learns from long answers learns to write
    /// long wrong ones.
    pub most_chars: Option<usize>,
    /// Operations of one pass, where there is a limit; passes then have short names as well. Of what a small model wrote after it
    /// had learned from whole passes, patterns of one or two operations were right in 23 of 32 attempts, longer ones in 26 of 186.
    pub most_operations: Option<usize>,
    /// Whether the passes are for a GPU, wherever they are written: what a graph makes in the host's memory is out of reach.
    pub for_gpu: bool,
    /// The description of the GPU that the cost model is about, where that is not the engine's device.
    pub target: Option<String>,
}

impl Default for SolveOptions {
    fn default() -> Self {
        SolveOptions {
            tune: true,
            seconds: 0.04,
            tune_seconds: None,
            measurements: None,
            most_passes: 100,
            most_chars: None,
            most_operations: None,
            for_gpu: false,
            target: None,
        }
    }
}
