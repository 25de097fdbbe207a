//! The walk over a graph's operations that grows kernels and counts them after each.

mod buffer;
mod groups;
mod library;
mod place;

use super::Settings;
use super::kernels::{KernelId, Kernels};
use super::lifetimes::{BufferId, Plan};
use super::work::{Reading, Space, Work};
use crate::graph::{Call, Graph};
use crate::infer::Inference;
use buffer::Buffer;
use smallvec::SmallVec;
use std::collections::BTreeSet;

/// Beyond these, TorchInductor stores a value instead of computing it again in its readers.
const MAX_READS: u32 = 8;
const MAX_READS_IF_SHARED: u32 = 4;
const MAX_WEIGHT: u32 = 30;
/// A graph with fewer convolutions per node than this keeps the layout it has.
const NODES_PER_CONVOLUTION: usize = 300;

pub(super) struct Walk<'a> {
    graph: &'a Graph,
    types: &'a Inference,
    plan: &'a Plan,
    settings: Settings,
    kernels: Kernels,
    buffers: Vec<Buffer>,
    op_kernels: Vec<SmallVec<[KernelId; 2]>>,
    /// Buffers that are read for the last time by each operation.
    last_reads: Vec<SmallVec<[BufferId; 4]>>,
    /// Copies made because channels come last.
    layout_copies: u32,
    convolutions: usize,
    flops: f64,
    weighted_flops: f64,
    /// Nodes of the decomposed graph so far.
    nodes: usize,
    draws: bool,
    /// Buffers with channels last that the present prefix returns.
    returned: BTreeSet<BufferId>,
}

impl<'a> Walk<'a> {
    pub fn new(graph: &'a Graph, types: &'a Inference, plan: &'a Plan, settings: Settings) -> Self {
        let mut last_reads = vec![SmallVec::new(); plan.steps.len()];
        for (id, lifetime) in plan.buffers.iter().enumerate() {
            if let Some(list) = lifetime.last_read.and_then(|at| last_reads.get_mut(at as usize)) {
                list.push(id as BufferId);
            }
        }
        Walk {
            graph,
            types,
            plan,
            settings,
            kernels: Kernels::default(),
            buffers: vec![Buffer::default(); plan.buffers.len()],
            op_kernels: Vec::with_capacity(plan.steps.len()),
            last_reads,
            layout_copies: 0,
            convolutions: 0,
            flops: 0.0,
            weighted_flops: 0.0,
            nodes: 0,
            draws: false,
            returned: BTreeSet::new(),
        }
    }

    /// Takes the next operation in and counts the kernels of the prefix it ends.
    pub fn step(&mut self, op: usize) -> u32 {
        let step = &self.plan.steps[op];
        self.op_kernels.push(SmallVec::new());
        self.nodes += step.reads.len();
        match step.work {
            Work::Free => self.nodes += 1,
            Work::Host => {}
            Work::Loop { elements, reading, weight } => {
                self.nodes += weight as usize;
                self.run_loop(op, Space::of(elements), reading, weight);
            }
            Work::Random { elements } => {
                self.draws = true;
                self.run_loop(op, Space::of(elements), Reading::Same, 4);
            }
            Work::Fold { space, innermost, keeps, apart } => {
                self.nodes += 6;
                self.run_fold(op, space, innermost, keeps, apart);
            }
            Work::Convolution(convolution) => self.run_convolution(op, convolution),
            Work::Library => _ = self.run_library(op),
            Work::Product => self.run_product(op),
            Work::Scatter { elements } => {
                self.run_loop(op, Space::of(elements), Reading::Same, 2);
                _ = self.run_library(op);
            }
        }
        self.update_lives(op);
        self.count()
    }

    fn count(&self) -> u32 {
        let copies =
            if self.is_channels_last() { self.layout_copies + self.returned_copies() } else { 0 };
        self.kernels.launched() + copies + u32::from(self.draws)
    }

    /// Whether convolutions run with channels last in this prefix.
    fn is_channels_last(&self) -> bool {
        self.convolutions > 0
            && self.nodes < NODES_PER_CONVOLUTION * self.convolutions
            && self.weighted_flops <= self.flops
    }

    /// Values of the prefix's return that lie with channels last and are copied by a kernel of their own.
    fn returned_copies(&self) -> u32 {
        let needs_copy = |id: &&BufferId| {
            let buffer = &self.buffers[**id as usize];
            let reordered = buffer.read_by_convolution || buffer.after_long;
            buffer.raw || (!self.settings.reorder_loops && reordered)
        };
        self.returned.iter().filter(needs_copy).count() as u32
    }

    /// The new buffer is returned by this prefix if anything later reads it; what was read for the last time is
    /// returned no more.
    fn update_lives(&mut self, op: usize) {
        if let Some(made) = self.plan.steps[op].makes {
            let lifetime = &self.plan.buffers[made as usize];
            if lifetime.writes_input {
                self.store(made);
            }
            if lifetime.last_read.is_some_and(|at| at as usize > op) {
                self.set_live(made, true);
            }
        }
        for id in std::mem::take(&mut self.last_reads[op]) {
            self.set_live(id, false);
            self.layout_copies += std::mem::take(&mut self.buffers[id as usize].cost_when_dead);
        }
    }

    fn set_live(&mut self, id: BufferId, live: bool) {
        let buffer = &mut self.buffers[id as usize];
        if buffer.live == live {
            return;
        }
        buffer.live = live;
        if live && buffer.channels_last {
            self.returned.insert(id);
        } else {
            self.returned.remove(&id);
        }
        if let Some(kernel) = buffer.kernel.filter(|kernel| !self.kernels.is_library(*kernel)) {
            if live {
                self.kernels.need(kernel);
            } else {
                self.kernels.no_longer_need(kernel);
            }
        }
    }

    fn store(&mut self, id: BufferId) {
        let buffer = &mut self.buffers[id as usize];
        if !std::mem::replace(&mut buffer.stored, true)
            && let Some(kernel) = buffer.kernel.filter(|kernel| !self.kernels.is_library(*kernel))
        {
            self.kernels.need(kernel);
        }
    }

    /// Whether readers in other spaces compute this value themselves.
    fn is_inlined(&self, id: BufferId) -> bool {
        let buffer = &self.buffers[id as usize];
        let shared = self.plan.buffers[id as usize].readers > 1;
        let limit = if shared { MAX_READS_IF_SHARED } else { MAX_READS };
        !buffer.stored && !buffer.opaque && buffer.reads <= limit && buffer.weight <= MAX_WEIGHT
    }

    /// The kernels that have to run before someone reads this buffer.
    fn kernels_before(&self, id: BufferId) -> SmallVec<[KernelId; 4]> {
        let buffer = &self.buffers[id as usize];
        let own = buffer.kernel.into_iter();
        if buffer.kernel.is_some_and(|k| !self.kernels.is_library(k)) && self.is_inlined(id) {
            let sources =
                buffer.sources.iter().filter_map(|(id, _)| self.buffers[*id as usize].kernel);
            sources.chain(buffer.after.iter().copied()).collect()
        } else {
            own.collect()
        }
    }

    fn call(&self, op: usize) -> Option<&'a Call> {
        self.graph.call(self.graph.op_node(op))
    }
}
