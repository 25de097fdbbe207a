//! Folds, convolutions and products: work that is not one loop over elements.

use super::Walk;
use crate::fusion::kernels::KernelId;
use crate::fusion::lifetimes::BufferId;
use crate::fusion::work::{Classifier, Convolution, Reading, Space, first_tensor};
use crate::graph::Call;
use crate::ops::Op;
use smallvec::SmallVec;

impl Walk<'_> {
    pub(super) fn run_fold(
        &mut self,
        op: usize,
        space: Space,
        innermost: bool,
        keeps: bool,
        apart: bool,
    ) {
        let step = &self.plan.steps[op];
        let split = space.is_split(innermost);
        self.note_spatial_fold(op, space, innermost, keeps);
        let first = self.place(op, space, Reading::Same, &step.reads, 4, step.makes);
        let mut last = first;
        if split {
            // Partial results, then their sum.
            last = self.follow(op, last, Space { outer: space.outer, inner: 2 });
        }
        if keeps && (split || apart) {
            last = self.follow(op, last, Space::of(space.total()));
        }
        if let Some(made) = step.makes {
            let buffer = &mut self.buffers[made as usize];
            buffer.kernel = Some(last);
            buffer.opaque = true;
        }
    }

    /// With channels last, a mean over the picture is no fold over neighbours: it may take two kernels, and the
    /// value it reads one more if others read it too. That shows once the value is returned no more.
    fn note_spatial_fold(&mut self, op: usize, space: Space, innermost: bool, keeps: bool) {
        let Some(&id) = self.plan.steps[op].reads.first() else { return };
        let buffer = &self.buffers[id as usize];
        if buffer.channels_last
            && buffer.kernel.is_some()
            && innermost
            && !keeps
            && space.is_split(false)
        {
            let shared = self.plan.buffers[id as usize].readers > 1;
            self.buffers[id as usize].cost_when_dead = if shared { 2 } else { 1 };
        }
    }

    /// A kernel that reads what another one has just stored.
    fn follow(&mut self, op: usize, first: KernelId, space: Space) -> KernelId {
        self.kernels.need(first);
        let next = self.kernels.add_loop(op as u32, space);
        self.kernels.run_after(next, first);
        self.op_kernels[op].push(next);
        next
    }

    pub(super) fn run_library(&mut self, op: usize) -> KernelId {
        let step = &self.plan.steps[op];
        let kernel = self.kernels.add_library(op as u32);
        for &id in &step.reads {
            self.store(id);
            if let Some(before) = self.buffers[id as usize].kernel {
                self.kernels.run_after(kernel, before);
            }
        }
        self.op_kernels[op].push(kernel);
        if let Some(made) = step.makes {
            if let Some(before) = self.buffers[made as usize].kernel {
                self.store(made);
                self.kernels.run_after(kernel, before);
            }
            self.buffers[made as usize].kernel = Some(kernel);
        }
        kernel
    }

    pub(super) fn run_convolution(&mut self, op: usize, convolution: Convolution) {
        let step = &self.plan.steps[op];
        self.convolutions += 1;
        self.flops += convolution.flops;
        self.weighted_flops += convolution.weighted_flops;
        let last = convolution.two_dimensional;
        let kernel = self.run_library(op);
        if last {
            let moves = [convolution.moves_input, convolution.moves_weight];
            for (&id, moves) in step.reads.iter().zip(moves) {
                let computed =
                    self.buffers[id as usize].kernel.is_some_and(|k| !self.kernels.is_library(k));
                let buffer = &mut self.buffers[id as usize];
                buffer.read_by_convolution = true;
                buffer.raw = false;
                if moves && !computed && !buffer.channels_last && !buffer.copied_to_channels_last {
                    buffer.copied_to_channels_last = true;
                    self.layout_copies += 1;
                }
            }
        }
        let Some(made) = step.makes else { return };
        if convolution.biased {
            let space = Space::of(convolution.elements);
            let bias = self.kernels.add_loop(op as u32, space);
            self.kernels.run_after(bias, kernel);
            self.op_kernels[op].push(bias);
            let buffer = &mut self.buffers[made as usize];
            buffer.kernel = Some(bias);
            buffer.after.push(kernel);
            buffer.reads = 2;
            buffer.weight = 1;
        }
        let buffer = &mut self.buffers[made as usize];
        buffer.channels_last = last;
        buffer.raw = last && !convolution.biased;
    }

    pub(super) fn run_product(&mut self, op: usize) {
        let step = &self.plan.steps[op];
        self.nodes += 3;
        for (id, elements) in self.copied_operands(op) {
            let kernel = self.place(op, Space::of(elements), Reading::Same, &[id], 1, None);
            self.kernels.need(kernel);
        }
        self.run_library(op);
        if let Some(made) = step.makes {
            self.buffers[made as usize].product = self.plan.buffers[made as usize].rank == 2;
        }
    }

    /// Operands whose batch dimensions do not merge, with their size.
    fn copied_operands(&self, op: usize) -> SmallVec<[(BufferId, i64); 2]> {
        let mut copied = SmallVec::new();
        let Some(call) = self.call(op) else { return copied };
        let classifier = Classifier { graph: self.graph, types: self.types };
        let plain = call.op() == Some(Op::Linear);
        let operands = if plain { 1 } else { 2 };
        let mut seen = 0;
        let reads = &self.plan.steps[op].reads;
        call.for_each_input(|input| {
            let Some(tensor) = first_tensor(self.types.value(input)) else { return };
            let Some(&id) = reads.get(seen) else { return };
            seen += 1;
            let leading = if plain {
                tensor.rank().saturating_sub(1)
            } else {
                tensor.rank().saturating_sub(2)
            };
            if seen <= operands && tensor.rank() > 2 && classifier.needs_copy(tensor, leading) {
                copied.push((id, tensor.elements()));
            }
        });
        copied
    }

    /// `product + bias` runs as one library call.
    pub(super) fn is_bias_of_product(&self, op: usize) -> bool {
        let step = &self.plan.steps[op];
        let is_add = self.call(op).and_then(Call::op) == Some(Op::Add);
        let (Some(made), [a, b]) = (step.makes, &step.reads[..]) else { return false };
        let elements = self.plan.buffers[made as usize].elements;
        let is_product = |id: BufferId| {
            let lifetime = &self.plan.buffers[id as usize];
            self.buffers[id as usize].product
                && lifetime.readers == 1
                && lifetime.elements == elements
        };
        let is_bias = |id: BufferId| self.plan.buffers[id as usize].rank <= 1;
        is_add && ((is_product(*a) && is_bias(*b)) || (is_product(*b) && is_bias(*a)))
    }
}
