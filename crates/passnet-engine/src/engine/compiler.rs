//! Compilers of whole graphs.

/// Compilers of whole graphs, to hold against eager as passes are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GraphCompiler {
    /// TorchInductor, in one of its modes.
    Inductor(InductorMode),
    /// Eager's launches recorded in a CUDA graph: the limit for code that is not fused.
    CudaGraph,
    /// The native engine's joining of neighbouring elementwise operations.
    Joined,
}

/// What TorchInductor is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum InductorMode {
    /// TorchInductor as `torch.compile` starts it.
    #[default]
    Default,
    /// With CUDA graphs.
    ReduceOverhead,
    /// Kernels chosen by measuring, with CUDA graphs.
    MaxAutotune,
    /// Kernels chosen by measuring.
    MaxAutotuneNoCudagraphs,
}

impl InductorMode {
    /// The name that `torch.compile` takes.
    pub const fn name(self) -> &'static str {
        match self {
            InductorMode::Default => "default",
            InductorMode::ReduceOverhead => "reduce-overhead",
            InductorMode::MaxAutotune => "max-autotune",
            InductorMode::MaxAutotuneNoCudagraphs => "max-autotune-no-cudagraphs",
        }
    }
}

impl GraphCompiler {
    /// In the order of the help.
    pub const ALL: [GraphCompiler; 6] = [
        GraphCompiler::Inductor(InductorMode::Default),
        GraphCompiler::Inductor(InductorMode::ReduceOverhead),
        GraphCompiler::Inductor(InductorMode::MaxAutotune),
        GraphCompiler::Inductor(InductorMode::MaxAutotuneNoCudagraphs),
        GraphCompiler::CudaGraph,
        GraphCompiler::Joined,
    ];

    /// The name under which results are kept: another mode is another compiler.
    pub const fn name(self) -> &'static str {
        match self {
            GraphCompiler::Inductor(InductorMode::Default) => "inductor",
            GraphCompiler::Inductor(InductorMode::ReduceOverhead) => "inductor-reduce-overhead",
            GraphCompiler::Inductor(InductorMode::MaxAutotune) => "inductor-max-autotune",
            GraphCompiler::Inductor(InductorMode::MaxAutotuneNoCudagraphs) => {
                "inductor-max-autotune-no-cudagraphs"
            }
            GraphCompiler::CudaGraph => "cudagraph",
            GraphCompiler::Joined => "joined",
        }
    }

    /// By the name on the command line.
    pub fn from_name(name: &str) -> Option<GraphCompiler> {
        GraphCompiler::ALL.into_iter().find(|compiler| compiler.name() == name)
    }
}
