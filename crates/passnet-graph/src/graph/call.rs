//! A call: one operation with its arguments. `ops/bind.rs` lays them out.

use super::arg::{Arg, NodeId};
use super::target::Target;
use crate::ops::Op;

/// One operation: what is called, and with what.
#[derive(Debug, Clone, PartialEq)]
pub struct Call {
    /// What is called.
    pub target: Target,
    /// For methods, attribute reads and operators the receiver is the first argument.
    pub args: Vec<Arg>,
    /// Named arguments, in the order of the text.
    pub kwargs: Vec<(Box<str>, Arg)>,
}

impl Call {
    /// The operation, when the table knows this spelling.
    pub fn op(&self) -> Option<Op> {
        self.target.op()
    }

    /// All arguments, positional first.
    pub fn all_args(&self) -> impl Iterator<Item = &Arg> {
        self.args.iter().chain(self.kwargs.iter().map(|(_, arg)| arg))
    }

    /// Calls `visit` for every node this call refers to, in order, repetitions included.
    pub fn for_each_input(&self, mut visit: impl FnMut(NodeId)) {
        for arg in self.all_args() {
            arg.for_each_node(&mut visit);
        }
    }

    /// Rewrites every reference to a node.
    pub fn map_inputs(&mut self, mut map: impl FnMut(NodeId) -> Arg) {
        for arg in &mut self.args {
            arg.map_nodes(&mut map);
        }
        for (_, arg) in &mut self.kwargs {
            arg.map_nodes(&mut map);
        }
    }
}
