//! The kernels of a walk as groups of operations, with the bytes that they move.

use super::Walk;
use crate::fusion::lifetimes::BufferId;
use crate::fusion::{GroupKind, KernelGroup};
use smallvec::SmallVec;

impl Walk<'_> {
    pub fn into_groups(mut self) -> Vec<KernelGroup> {
        let mut places: Vec<Option<usize>> = vec![None; self.kernels.len()];
        let mut groups: Vec<KernelGroup> = Vec::new();
        let mut reads: Vec<Vec<BufferId>> = Vec::new();
        for op in 0..self.op_kernels.len() {
            for kernel in self.op_kernels[op].clone() {
                let root = self.kernels.find(kernel);
                if !self.kernels.is_launched(root) {
                    continue;
                }
                let at = *places[root as usize].get_or_insert_with(|| {
                    groups.push(KernelGroup {
                        kind: GroupKind::Pointwise,
                        ops: Vec::new(),
                        bytes_read: 0,
                        bytes_written: 0,
                    });
                    reads.push(Vec::new());
                    groups.len() - 1
                });
                groups[at].kind = match self.kernels.space(root) {
                    _ if self.kernels.is_library(root) => GroupKind::Library,
                    space if space.is_reduction() => GroupKind::Reduction,
                    _ => GroupKind::Pointwise,
                };
                if groups[at].ops.last() != Some(&op) {
                    groups[at].ops.push(op);
                }
                let step = &self.plan.steps[op];
                let made = step.makes.map(|made| &self.buffers[made as usize]);
                let computed =
                    made.filter(|made| made.kernel.map(|k| self.kernels.root(k)) == Some(root));
                let loaded: SmallVec<[BufferId; 6]> = match computed {
                    Some(made) if !self.kernels.is_library(root) => {
                        made.sources.iter().map(|(id, _)| *id).collect()
                    }
                    _ => step.reads.iter().copied().collect(),
                };
                for id in loaded {
                    let inside = self.buffers[id as usize].kernel.map(|k| self.kernels.find(k))
                        == Some(root);
                    if !inside && !reads[at].contains(&id) {
                        reads[at].push(id);
                    }
                }
                if let Some(made) = self.plan.steps[op].makes {
                    let buffer = &self.buffers[made as usize];
                    let here = buffer.kernel.map(|k| self.kernels.find(k)) == Some(root);
                    if self.kernels.is_library(root) || here && (buffer.stored || buffer.live) {
                        groups[at].bytes_written = groups[at]
                            .bytes_written
                            .saturating_add(self.plan.buffers[made as usize].bytes);
                    }
                }
            }
        }
        for (group, reads) in groups.iter_mut().zip(&reads) {
            group.bytes_read = reads
                .iter()
                .fold(0, |sum: i64, id| sum.saturating_add(self.plan.buffers[*id as usize].bytes));
        }
        groups
    }
}
