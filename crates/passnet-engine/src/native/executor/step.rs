//! One call of a graph, ready to run: what it does, and where its arguments come from.

use crate::engine::Value;
use crate::native::dispatch::OpFunction;
use crate::native::wrapper::WrapperCall;
use passnet_graph::ops::{Op, Signature};

#[derive(Debug)]
pub(super) struct Placeholder {
    pub(super) name: Box<str>,
    pub(super) is_symbol: bool,
    /// Nothing uses it.
    pub(super) unused: bool,
}

/// One call.
#[derive(Debug)]
pub struct Step {
    /// The node's name.
    pub name: Box<str>,
    /// The operation as the graph spells it.
    pub operation: Box<str>,
    /// The line in the graph's text.
    pub line: u32,
    pub(super) work: Work,
    /// One argument per parameter of the signature, or as the wrapper takes them.
    pub(super) arguments: Box<[Argument]>,
    pub(super) target: usize,
    /// Values used here for the last time.
    pub(super) last_uses: Box<[u32]>,
    /// Parameters whose values end here, as a bit set over the first 64.
    pub(super) dying: u64,
}

/// What a step does.
#[derive(Debug)]
pub(super) enum Work {
    /// An operation of the table.
    Operation(Operation),
    /// The wrapper of a pass.
    Wrapper(Box<WrapperCall>),
}

#[derive(Debug)]
pub(super) struct Operation {
    pub(super) op: Op,
    pub(super) function: OpFunction,
    pub(super) signature: &'static Signature,
    pub(super) in_place: bool,
    /// The parameter that names a tensor to write the result into.
    pub(super) out: Option<usize>,
}

impl Step {
    /// The operation of the table, unless the step calls a wrapper.
    pub fn op(&self) -> Option<Op> {
        match &self.work {
            Work::Operation(operation) => Some(operation.op),
            Work::Wrapper(_) => None,
        }
    }

    /// The argument of a named parameter.
    pub(super) fn argument(&self, name: &str) -> Option<&Argument> {
        match &self.work {
            Work::Operation(operation) => {
                operation.signature.position(name).and_then(|place| self.arguments.get(place))
            }
            Work::Wrapper(_) => None,
        }
    }
}

/// Where an argument comes from.
#[derive(Debug)]
pub(super) enum Argument {
    Node(u32),
    Constant(Value),
    /// A sequence or slice with nodes in it.
    Sequence(Box<[Argument]>),
    Slice(Box<[Argument; 3]>),
}
