//! Which buffer each operation reads and makes, and until when each is read.
//!
//! A buffer is one version of a memory: views share it, an in-place operation makes the next version.

use super::work::{Classifier, Work, first_tensor};
use crate::graph::{Call, Graph, NodeId};
use crate::infer::Inference;
use crate::ops::Op;
use smallvec::SmallVec;

pub(super) type BufferId = u32;

/// A buffer as the walk over operations finds it.
#[derive(Debug, Clone)]
pub(super) struct Lifetime {
    /// The operation that makes it; `None` for a graph input.
    pub made_by: Option<u32>,
    /// The last operation that reads it; the number of operations when it is returned.
    pub last_read: Option<u32>,
    pub readers: u32,
    pub elements: i64,
    pub bytes: i64,
    pub rank: usize,
    /// A graph input is written through it: it is stored whatever happens later.
    pub writes_input: bool,
}

#[derive(Debug)]
pub(super) struct Step {
    pub work: Work,
    pub reads: SmallVec<[BufferId; 6]>,
    pub makes: Option<BufferId>,
}

#[derive(Debug)]
pub(super) struct Plan {
    pub steps: Vec<Step>,
    pub buffers: Vec<Lifetime>,
}

pub(super) fn plan(graph: &Graph, types: &Inference) -> Plan {
    let mut planner = Planner {
        graph,
        types,
        memory: vec![None; graph.nodes().len()],
        current: Vec::new(),
        plan: Plan { steps: Vec::with_capacity(graph.op_count()), buffers: Vec::new() },
    };
    for index in 0..graph.placeholder_count() {
        let id = NodeId::new(index);
        if first_tensor(types.value(id)).is_some() {
            let buffer = planner.buffer(id, None);
            planner.own(id, buffer);
        }
    }
    for (index, (id, call)) in graph.calls().enumerate() {
        planner.step(index as u32, id, call);
    }
    let end = planner.plan.steps.len() as u32;
    for output in &graph.outputs {
        output.for_each_node(&mut |id| {
            if let Some(buffer) = planner.buffer_of(id) {
                planner.plan.buffers[buffer as usize].last_read = Some(end);
            }
        });
    }
    planner.plan
}

struct Planner<'a> {
    graph: &'a Graph,
    types: &'a Inference,
    /// The memory a node's value lies in.
    memory: Vec<Option<u32>>,
    /// The present version of each memory.
    current: Vec<BufferId>,
    plan: Plan,
}

impl Planner<'_> {
    fn buffer(&mut self, id: NodeId, made_by: Option<u32>) -> BufferId {
        let tensor = first_tensor(self.types.value(id));
        let elements = tensor.map_or(-1, |tensor| tensor.elements());
        self.plan.buffers.push(Lifetime {
            made_by,
            last_read: None,
            readers: 0,
            elements,
            bytes: tensor.map_or(0, |t| elements.saturating_mul(t.dtype.size() as i64)),
            rank: tensor.map_or(0, |tensor| tensor.rank()),
            writes_input: false,
        });
        self.plan.buffers.len() as BufferId - 1
    }

    /// Gives a node a memory of its own.
    fn own(&mut self, id: NodeId, buffer: BufferId) {
        self.memory[id.index()] = Some(self.current.len() as u32);
        self.current.push(buffer);
    }

    fn buffer_of(&self, id: NodeId) -> Option<BufferId> {
        self.memory.get(id.index()).copied().flatten().map(|memory| self.current[memory as usize])
    }

    fn step(&mut self, index: u32, id: NodeId, call: &Call) {
        let work = Classifier { graph: self.graph, types: self.types }.classify(id, call);
        let mut reads: SmallVec<[BufferId; 6]> = SmallVec::new();
        call.for_each_input(|input| {
            if let Some(buffer) = self.buffer_of(input).filter(|buffer| !reads.contains(buffer)) {
                reads.push(buffer);
            }
        });
        for &buffer in &reads {
            let lifetime = &mut self.plan.buffers[buffer as usize];
            lifetime.last_read = Some(index);
            lifetime.readers += u32::from(work != Work::Free);
        }
        if call.op().is_some_and(reads_only_the_shape) {
            reads.clear();
        }
        let makes = match work {
            Work::Host => None,
            Work::Free => {
                let mut source = None;
                call.for_each_input(|input| source = source.or(self.memory[input.index()]));
                self.memory[id.index()] = source;
                None
            }
            _ => Some(self.make(index, id, call)),
        };
        self.plan.steps.push(Step { work, reads, makes });
    }

    fn make(&mut self, index: u32, id: NodeId, call: &Call) -> BufferId {
        let target = call.bind().ok().and_then(|bound| bound.mutated()?.as_node());
        let memory = target.and_then(|target| self.memory[target.index()]);
        let (Some(memory), Some(target)) = (memory, target) else {
            let buffer = self.buffer(id, Some(index));
            self.own(id, buffer);
            return buffer;
        };
        // A write through a view makes the next version of the whole memory.
        let old = self.current[memory as usize] as usize;
        let written_whole = first_tensor(self.types.value(target));
        let buffer = self.buffer(id, Some(index));
        let (elements, bytes) = (self.plan.buffers[old].elements, self.plan.buffers[old].bytes);
        let input = self.plan.buffers[old].made_by.is_none() || self.plan.buffers[old].writes_input;
        let made = &mut self.plan.buffers[buffer as usize];
        if written_whole.is_some_and(|tensor| tensor.elements() < elements) {
            (made.elements, made.bytes) = (elements, bytes);
        }
        made.writes_input = input;
        self.memory[id.index()] = Some(memory);
        self.current[memory as usize] = buffer;
        buffer
    }
}

/// Operations that take a tensor for its shape, dtype and device alone.
fn reads_only_the_shape(op: Op) -> bool {
    use Op::{
        EmptyLike, FullLike, NewEmpty, NewFull, NewOnes, NewTensor, NewZeros, OnesLike, RandLike,
        RandnLike, ZerosLike,
    };
    matches!(
        op,
        EmptyLike
            | FullLike
            | NewEmpty
            | NewFull
            | NewOnes
            | NewTensor
            | NewZeros
            | OnesLike
            | RandLike
            | RandnLike
            | ZerosLike
    )
}
