//! Does a graph run? Asked of the native engine, with inputs drawn as they are recorded.

use clap::Args;
use passnet_engine::native::folder::draw_inputs;
use passnet_engine::native::tensor::Budget;
use passnet_engine::native::{NativeEngine, Wrappers};
use passnet_engine::{Engine, EngineError, ErrorKind, Precision, RunOptions};
use passnet_graph::{GraphFiles, GraphFolder};

const SEED: u64 = 123;
/// What a run may hold; what needs more is not judged.
const MEMORY: usize = 1 << 30;

/// Whether graphs are run.
#[derive(Debug, Args)]
pub(super) struct RunArgs {
    /// Run every graph on the native engine, too
    #[arg(long)]
    run: bool,

    /// Million elements that the arguments of a graph may have together, to be run
    #[arg(long, default_value_t = 4, value_name = "N", requires = "run")]
    most_elements: u64,
}

impl RunArgs {
    pub(super) fn is_asked(&self) -> bool {
        self.run
    }

    /// Why a graph does not run. One that is too large is not run, and one for which the engine has no operation or no
    /// room is no fault of the graph.
    pub(super) fn refusal(&self, files: &GraphFiles, folder: &GraphFolder) -> Result<(), String> {
        let elements = folder.metas.iter().map(|meta| meta.elements().unsigned_abs());
        let most = self.most_elements.saturating_mul(1_000_000);
        if elements.fold(0, u64::saturating_add) > most {
            return Ok(());
        }
        let judged = |error: EngineError| match error.kind {
            ErrorKind::Memory | ErrorKind::Unsupported | ErrorKind::Timeout => Ok(()),
            _ => Err(format!("does not run: {error}")),
        };
        let Ok(prepared) =
            NativeEngine.prepare(&folder.graph, Precision::AsWritten, &Wrappers::default())
        else {
            return Ok(());
        };
        let inputs = Budget::new(MEMORY).scope(|| draw_inputs(files, &folder.graph, SEED, None));
        let Ok(inputs) = inputs else { return Err("its inputs cannot be drawn".into()) };
        let options = RunOptions { seed: SEED, memory_limit: MEMORY, ..RunOptions::default() };
        prepared.run(&inputs, &options).map_or_else(judged, |_| Ok(()))
    }
}
