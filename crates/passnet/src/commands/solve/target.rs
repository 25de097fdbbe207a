//! `--target`: passes for a GPU that is not here.

use super::{SolveArgs, Solved};
use crate::cache::cache_folder;
use crate::error::CommandError;
use crate::output::warn;
use passnet_bench::sample::Sample;
use passnet_engine::sandbox::Sandbox;
use passnet_engine::torch::compile::Compiler;
use passnet_solver::cubins;
use passnet_solver::target::Target;
use std::path::{Path, PathBuf};

impl SolveArgs {
    /// What is described, where something is asked for.
    pub(super) fn target(&self) -> Result<Option<Target>, CommandError> {
        let found = self.target.as_deref().map(Target::find).transpose();
        found.map_err(|error| CommandError::Located(vec![*error]))
    }

    /// Compiles the kernels of what was solved, where this machine can; cubins go where the torch engine looks for them.
    pub(super) fn compile(&self, target: &Target, jobs: &[(Sample, String)], solved: &[Solved]) {
        let sandbox = match Sandbox::strongest() {
            Ok(sandbox) => sandbox,
            Err(refusal) => {
                warn(&format!("note: nothing is compiled: {refusal} ({})", refusal.hint));
                return;
            }
        };
        let [major, minor] = target.compute_capability;
        let compiler =
            Compiler::new(self.engine.choice().python, cache_folder().join("cubins"), sandbox)
                .with_capability(major, minor);
        if let Err(error) = compiler.triton() {
            warn(&format!("note: nothing is compiled: {error}"));
            return;
        }
        let is_solved = |(_, solved): &(&(Sample, String), &Solved)| solved.result.is_ok();
        let folders: Vec<(&Sample, PathBuf)> = jobs
            .iter()
            .zip(solved)
            .filter(is_solved)
            .map(|((sample, label), _)| (sample, self.folder(sample, label)))
            .collect();
        let tasks: Vec<(&Sample, &Path)> =
            folders.iter().map(|(sample, folder)| (*sample, &**folder)).collect();
        let compiled = cubins::compile(&compiler, &tasks);
        warn(&format!("note: {} launches compiled for {}", compiled.launches, target.name));
        for reason in &compiled.failed {
            warn(&format!("note: not compiled: {reason}"));
        }
    }
}
