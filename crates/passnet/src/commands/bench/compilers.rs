//! The compilers that can be named, and which engine has them.

use crate::error::CommandError;
use clap::ValueEnum;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use passnet_bench::subject::Subject;
use passnet_engine::{EngineChoice, EngineName, GraphCompiler, InductorMode};

/// The words of `--compiler`. The modes of TorchInductor are an option of their own.
pub(super) fn subject_parser() -> impl TypedValueParser<Value = Subject> {
    let words = [
        PossibleValue::new("pass"),
        PossibleValue::new("eager"),
        PossibleValue::new("inductor")
            .help("TorchInductor in one of its modes; needs `--engine torch`"),
        PossibleValue::new("cudagraph").help(
            "Eager's launches recorded in a CUDA graph; needs `--engine torch --device cuda`",
        ),
        PossibleValue::new("joined")
            .help("The native engine's own joining of elementwise operations"),
    ];
    PossibleValuesParser::new(words)
        .try_map(|word| Subject::from_name(&word).ok_or("there is no such compiler"))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum ModeArg {
    Default,
    /// With CUDA graphs
    ReduceOverhead,
    /// Kernels chosen by measuring, with CUDA graphs
    MaxAutotune,
    /// Kernels chosen by measuring
    MaxAutotuneNoCudagraphs,
}

impl From<ModeArg> for InductorMode {
    fn from(mode: ModeArg) -> InductorMode {
        match mode {
            ModeArg::Default => InductorMode::Default,
            ModeArg::ReduceOverhead => InductorMode::ReduceOverhead,
            ModeArg::MaxAutotune => InductorMode::MaxAutotune,
            ModeArg::MaxAutotuneNoCudagraphs => InductorMode::MaxAutotuneNoCudagraphs,
        }
    }
}

/// The word of `--compiler`.
pub(super) fn kind_of(compiler: GraphCompiler) -> &'static str {
    match compiler {
        GraphCompiler::Inductor(_) => "inductor",
        other => other.name(),
    }
}

/// Refuses what the engine asked for does not have; `flag` is how it was asked for.
pub(crate) fn has_compiler(
    flag: &str,
    compiler: GraphCompiler,
    choice: &EngineChoice,
) -> Result<(), CommandError> {
    let is_torch = choice.engine == EngineName::Torch;
    let (needs, hint) = match compiler {
        GraphCompiler::Inductor(_) if !is_torch => (
            "--engine torch",
            "TorchInductor is part of PyTorch; `passnet doctor` says what this machine has",
        ),
        GraphCompiler::CudaGraph if !is_torch || choice.device != "cuda" => (
            "--engine torch --device cuda",
            "a CUDA graph is recorded on a GPU; on a CPU there is nothing to record",
        ),
        GraphCompiler::Joined if is_torch => {
            ("--engine native", "joining operations is what the native engine does by itself")
        }
        _ => return Ok(()),
    };
    Err(CommandError::input(format!("`{flag}` needs `{needs}`")).with_hint(hint))
}
