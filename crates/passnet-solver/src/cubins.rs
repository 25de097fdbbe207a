//! Kernels of written passes compiled for a GPU that is not here, so that its time goes into measuring alone.

use passnet_bench::candidate::Candidate;
use passnet_bench::sample::Sample;
use passnet_bench::signature::Signature;
use passnet_engine::EngineError;
use passnet_engine::torch::compile::Compiler;
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// What came of compiling.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Compiled {
    /// Launches whose cubin lies in the cache now.
    pub launches: usize,
    /// Why others have none; each reason once.
    pub failed: BTreeSet<String>,
}

/// Compiles what the passes of tasks launch in the tasks' graphs, on all cores. Buffers are taken to begin where PyTorch's
/// allocator puts them.
pub fn compile(compiler: &Compiler, tasks: &[(&Sample, &Path)]) -> Compiled {
    let mut compiled = Compiled::default();
    let mut wanted = Vec::new();
    for (sample, folder) in tasks {
        match Candidate::load(folder, None, true) {
            Ok(candidate) => {
                let files = sample.graphs.iter().filter_map(|graph| sample.graph_files(graph).ok());
                wanted.extend(files.flat_map(|files| candidate.signatures(&files)));
            }
            Err(verdict) => drop(compiled.failed.insert(format!("{}: {verdict}", sample.name))),
        }
    }
    let next = AtomicUsize::new(0);
    let found = Mutex::new(compiled);
    let work = || {
        while let Some(signature) = wanted.get(next.fetch_add(1, Ordering::Relaxed)) {
            let made = compile_one(compiler, signature);
            let mut found = found.lock().unwrap_or_else(PoisonError::into_inner);
            match made {
                Ok(launches) => found.launches += launches,
                Err(error) => drop(found.failed.insert(error.to_string())),
            }
        }
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 1..threads.min(wanted.len()) {
            scope.spawn(work);
        }
        work();
    });
    found.into_inner().unwrap_or_else(PoisonError::into_inner)
}

fn compile_one(compiler: &Compiler, signature: &Signature) -> Result<usize, EngineError> {
    let plan = &signature.fixture.plan;
    let aligned = vec![true; plan.buffers.len()];
    Ok(compiler.compile_plan(&signature.fixture.modules, plan, &aligned)?.len())
}
