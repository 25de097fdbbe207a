//! The walk over a graph's operations that grows kernels and counts them after each.

use super::kernels::{KernelId, Kernels};
use super::lifetimes::{BufferId, Plan};
use super::work::{Classifier, Convolution, Reading, Space, Work, first_tensor};
use super::{Group, GroupKind, Settings};
use crate::graph::{Call, Graph};
use crate::infer::Inference;
use crate::ops::Op;
use smallvec::SmallVec;
use std::collections::BTreeSet;

/// Beyond these, TorchInductor stores a value instead of computing it again in its readers.
const MAX_READS: u32 = 8;
const MAX_READS_IF_SHARED: u32 = 4;
const MAX_WEIGHT: u32 = 30;
/// How many earlier readers of a buffer are tried as partners.
const PARTNERS: usize = 4;
/// A graph with fewer convolutions per node than this keeps the layout it has.
const NODES_PER_CONVOLUTION: usize = 300;

/// What has become of a buffer.
#[derive(Debug, Clone, Default)]
struct Buffer {
    kernel: Option<KernelId>,
    /// Stored for good: someone other than the prefix's return needs it.
    stored: bool,
    live: bool,
    /// Must not be computed twice: folds and pooled values.
    opaque: bool,
    reads: u32,
    weight: u32,
    /// What a reader reads in its place if it computes it itself, and whether at the same place.
    sources: SmallVec<[(BufferId, bool); 4]>,
    /// Kernels that such a reader has to wait for, beyond those of its sources.
    after: SmallVec<[KernelId; 1]>,
    /// Kernels that read it, newest last.
    readers: SmallVec<[KernelId; 2]>,
    channels_last: bool,
    /// A convolution's result that nothing has computed on yet.
    raw: bool,
    read_by_convolution: bool,
    /// Comes after an expression that was too long to be inlined.
    after_long: bool,
    /// The product of two matrices.
    product: bool,
    copied_to_channels_last: bool,
    /// Kernels that a fold over it takes more, with channels last, unless the prefix returns it.
    cost_when_dead: u32,
}

/// What a loop computes for one element, its inlined producers included.
#[derive(Default)]
struct Expression {
    reads: u32,
    weight: u32,
    sources: SmallVec<[(BufferId, bool); 4]>,
    after: SmallVec<[KernelId; 1]>,
    after_long: bool,
}

impl Expression {
    /// Reads a buffer: computes it on the way where that is allowed and done, loads it otherwise.
    fn read(&mut self, walk: &Walk, id: BufferId, may_inline: bool, aligned: bool) {
        let buffer = &walk.buffers[id as usize];
        if may_inline && walk.is_inlined(id) {
            self.reads += buffer.reads;
            self.weight += buffer.weight;
            self.sources.extend(buffer.sources.iter().map(|(id, same)| (*id, *same && aligned)));
            self.after.extend(buffer.after.iter().copied());
        } else {
            self.reads += 1;
            self.sources.push((id, aligned));
        }
    }
}

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

    fn run_loop(&mut self, op: usize, space: Space, reading: Reading, weight: u32) {
        let step = &self.plan.steps[op];
        let kernel = self.place(op, space, reading, &step.reads, weight, step.makes);
        if let Some(made) = step.makes {
            self.buffers[made as usize].opaque |= reading == Reading::Window;
            if self.is_bias_of_product(op) {
                self.kernels.set_absorbed(kernel, true);
            }
        }
    }

    /// Finds or makes the kernel for a loop, and records what it reads.
    fn place(
        &mut self,
        op: usize,
        space: Space,
        reading: Reading,
        reads: &[BufferId],
        weight: u32,
        makes: Option<BufferId>,
    ) -> KernelId {
        let mut outside: SmallVec<[BufferId; 6]> = SmallVec::new();
        let mut candidates: SmallVec<[(u32, KernelId, BufferId); 4]> = SmallVec::new();
        for &id in reads {
            match self.buffers[id as usize].kernel {
                Some(kernel) if !self.kernels.is_library(kernel) => {
                    let fits = reading == Reading::Same && self.kernels.space(kernel).fits(space);
                    if fits && self.kernels.has_room(kernel) {
                        candidates.push((self.kernels.last_op(kernel), kernel, id));
                    } else {
                        outside.push(id);
                    }
                }
                _ => outside.push(id),
            }
        }
        candidates.sort_unstable_by(|a, b| b.cmp(a));
        let mut home: Option<KernelId> = None;
        let mut joined: SmallVec<[BufferId; 4]> = SmallVec::new();
        for index in 0..candidates.len() {
            let (_, kernel, id) = candidates[index];
            let may = match home {
                Some(home) => {
                    self.kernels.find(home) == self.kernels.find(kernel)
                        || self.kernels.may_merge(home, kernel)
                }
                None => {
                    let others =
                        outside.iter().copied().chain(candidates[index + 1..].iter().map(|c| c.2));
                    let others: SmallVec<[BufferId; 6]> = others.collect();
                    !others.iter().any(|other| self.waits_for(*other, kernel))
                }
            };
            if !may {
                outside.push(id);
                continue;
            }
            joined.push(id);
            home = Some(match home {
                Some(home) => self.kernels.merge(home, kernel),
                None => {
                    self.kernels.join(kernel, op as u32, space);
                    kernel
                }
            });
            if home.is_some() && joined.len() == 1 {
                // What the operation waits for binds the kernel it is in before others are merged into it.
                let earlier: SmallVec<[KernelId; 8]> =
                    outside.iter().flat_map(|id| self.kernels_before(*id)).collect();
                for before in earlier {
                    self.kernels.run_after(kernel, before);
                }
            }
        }
        let mut home = home.unwrap_or_else(|| self.kernels.add_loop(op as u32, space));
        let (joined, outside) = (joined, outside);
        for &id in &outside {
            for before in self.kernels_before(id) {
                self.kernels.run_after(home, before);
            }
        }
        let mut expression = Expression { weight, ..Expression::default() };
        for &id in &joined {
            let buffer = &self.buffers[id as usize];
            expression.after_long |=
                buffer.after_long || buffer.reads > MAX_READS || buffer.weight > MAX_WEIGHT;
            expression.read(self, id, true, true);
        }
        for &id in &outside {
            let computed =
                self.buffers[id as usize].kernel.is_some_and(|k| !self.kernels.is_library(k));
            let inlined = computed && reading != Reading::Window;
            expression.read(self, id, inlined, reading == Reading::Same);
        }
        expression.sources.sort_unstable();
        expression.sources.dedup_by_key(|(id, _)| *id);
        for &(id, _) in &expression.sources {
            let kernel = self.buffers[id as usize].kernel;
            if let Some(kernel) =
                kernel.filter(|kernel| self.kernels.find(*kernel) != self.kernels.find(home))
            {
                self.store(id);
                self.kernels.run_after(home, kernel);
            }
        }
        if reading == Reading::Same {
            home = self.join_other_readers(home, &expression.sources);
        }
        let channels_last = reads.iter().any(|id| self.buffers[*id as usize].channels_last);
        for &(id, aligned) in &expression.sources {
            let buffer = &mut self.buffers[id as usize];
            buffer.raw = false;
            if aligned {
                if buffer.readers.len() == PARTNERS {
                    buffer.readers.remove(0);
                }
                buffer.readers.push(home);
            }
        }
        if let Some(made) = makes {
            let rank = self.plan.buffers[made as usize].rank;
            let buffer = &mut self.buffers[made as usize];
            buffer.kernel = Some(home);
            buffer.reads = expression.reads;
            buffer.weight = expression.weight;
            buffer.sources = expression.sources;
            buffer.after = expression.after;
            buffer.channels_last = channels_last && rank == 4;
            buffer.after_long = expression.after_long;
        }
        self.op_kernels[op].push(home);
        home
    }

    fn waits_for(&self, id: BufferId, kernel: KernelId) -> bool {
        self.kernels_before(id).iter().any(|before| self.kernels.depends(*before, kernel))
    }

    /// Loops over the same space that read the same buffer become one kernel.
    fn join_other_readers(&mut self, home: KernelId, sources: &[(BufferId, bool)]) -> KernelId {
        let mut home = home;
        for &(id, _) in sources.iter().filter(|(_, aligned)| *aligned) {
            let elements = self.plan.buffers[id as usize].elements;
            for other in self.buffers[id as usize].readers.clone() {
                let same = self.kernels.find(other) == self.kernels.find(home);
                let whole = elements == self.kernels.space(home).total();
                if !same && whole && self.kernels.may_merge(home, other) {
                    home = self.kernels.merge(home, other);
                }
            }
        }
        home
    }

    fn run_fold(&mut self, op: usize, space: Space, innermost: bool, keeps: bool, apart: bool) {
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

    fn run_library(&mut self, op: usize) -> KernelId {
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

    fn run_convolution(&mut self, op: usize, convolution: Convolution) {
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

    fn run_product(&mut self, op: usize) {
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
    fn is_bias_of_product(&self, op: usize) -> bool {
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

    fn call(&self, op: usize) -> Option<&'a Call> {
        self.graph.call(self.graph.op_node(op))
    }

    pub fn into_groups(mut self) -> Vec<Group> {
        let mut places: Vec<Option<usize>> = vec![None; self.kernels.len()];
        let mut groups: Vec<Group> = Vec::new();
        let mut reads: Vec<Vec<BufferId>> = Vec::new();
        for op in 0..self.op_kernels.len() {
            for kernel in self.op_kernels[op].clone() {
                let root = self.kernels.find(kernel);
                if !self.kernels.is_launched(root) {
                    continue;
                }
                let at = *places[root as usize].get_or_insert_with(|| {
                    groups.push(Group {
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
