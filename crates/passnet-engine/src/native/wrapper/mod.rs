//! Replaced nodes: the wrapper of a pass, run as a launch plan.
//!
//! The wrapper's text is evaluated once for each signature of arguments (shapes, strides, types, numbers); every later
//! call with that signature replays the plan. Memory is the engine's: outputs are fresh, inputs are lent.

mod call;
mod planning;
mod signature;
mod signed_plan;

pub(super) use call::WrapperCall;

pub(crate) use planning::{Planned, Wrapper};

use crate::tuning::Tuning;
use passnet_graph::graph::Replacement;
use passnet_kernel::ModuleSet;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The files behind the wrappers that a graph's replaced nodes name, by pass.
#[derive(Debug, Clone, Default)]
pub struct Wrappers {
    passes: BTreeMap<Box<str>, Pass>,
    /// Whether nothing is timed here: kernels are only watched, with every configuration that they may run with elsewhere.
    untimed: bool,
}

/// The files of a pass, and what was chosen for its tuned kernels.
#[derive(Debug, Clone)]
struct Pass {
    files: Arc<ModuleSet>,
    /// By times of the native engine, and by times of a worker.
    here: Arc<Tuning>,
    elsewhere: Arc<Tuning>,
}

impl Wrappers {
    /// Adds a pass; the first of its files defines the wrapper.
    pub fn add(&mut self, pass: &str, files: ModuleSet) {
        let (here, elsewhere) = Default::default();
        self.passes.insert(pass.into(), Pass { files: Arc::new(files), here, elsewhere });
    }

    /// Whether a kernel may have configurations to choose from.
    pub fn have_tuned_kernels(&self) -> bool {
        self.passes.values().any(|pass| pass.files.mention("autotune"))
    }

    /// The sizes of blocks that the files name, the smallest first.
    pub fn block_sizes(&self) -> Vec<i64> {
        let sizes = self.passes.values().flat_map(|pass| pass.files.block_sizes());
        let sizes: std::collections::BTreeSet<i64> = sizes.collect();
        sizes.into_iter().collect()
    }

    /// The same for watching alone.
    pub(crate) fn untimed(&self) -> Wrappers {
        Wrappers { passes: self.passes.clone(), untimed: true }
    }

    /// The wrapper that a replaced node names, for a worker's kernels.
    pub(crate) fn wrapper(&self, replacement: &Replacement) -> Option<Wrapper> {
        let Pass { files, elsewhere, .. } = self.passes.get(&replacement.pass)?.clone();
        Some(Wrapper { files, replacement: replacement.clone(), tuning: elsewhere })
    }

    pub(super) fn call(&self, replacement: &Replacement) -> Option<WrapperCall> {
        let Pass { files, here, .. } = self.passes.get(&replacement.pass)?.clone();
        let wrapper = Wrapper { files, replacement: replacement.clone(), tuning: here };
        Some(WrapperCall { wrapper, untimed: self.untimed, plans: Default::default() })
    }
}
