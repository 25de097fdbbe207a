//! The state of one inference: values so far, guards, writes, vmap nesting.

use super::dim::Dim;
use super::problem::Inferred;
use super::value::{Shape, TensorType, Value};
use crate::graph::NodeId;
use crate::view::{region, shape};
use rustc_hash::FxHashSet;
use std::cell::{Cell, RefCell};
use std::fmt;

/// A fact about symbols that the inferred types rely on: `left == right`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Guard {
    /// One size of a pair that the graph takes for equal.
    pub left: Dim,
    /// The other one.
    pub right: Dim,
    /// The node whose inference relied on it first.
    pub(super) node: NodeId,
}

impl fmt::Display for Guard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} == {}", self.left, self.right)
    }
}

#[derive(Debug)]
pub(super) struct Scope {
    pub(super) values: Vec<Value>,
    /// Where to read a node's value now: in-place view operations (`x.unsqueeze_(0)`) change the metadata
    /// of the tensor object that earlier nodes stand for.
    latest: Vec<u32>,
    /// For every node, the first node that is the same Python object.
    object: Vec<u32>,
    written: FxHashSet<u32>,
    guards: RefCell<Vec<Guard>>,
    pub(super) node: NodeId,
    vmap_depth: Cell<i64>,
}

/// Guards beyond this are dropped: they only inform.
const MAX_GUARDS: usize = 256;

impl Scope {
    pub(super) fn new(nodes: usize) -> Self {
        Scope {
            values: Vec::with_capacity(nodes),
            latest: Vec::with_capacity(nodes),
            object: Vec::with_capacity(nodes),
            written: FxHashSet::default(),
            guards: RefCell::new(Vec::new()),
            node: NodeId::new(0),
            vmap_depth: Cell::new(0),
        }
    }

    pub(super) fn value(&self, id: NodeId) -> &Value {
        &self.values[self.latest[id.index()] as usize]
    }

    /// Adds the value of the next node.
    pub(super) fn push(&mut self, mut value: Value) {
        let index = self.values.len() as u32;
        value.for_each_tensor_mut(&mut |tensor| {
            if tensor.origin == super::value::FRESH {
                tensor.origin = index;
            }
        });
        self.values.push(value);
        self.latest.push(index);
        self.object.push(index);
    }

    /// Adds a node that is the same object as an earlier one; `moved` when its metadata changed.
    pub(super) fn push_same_object(&mut self, value: Value, target: NodeId, moved: bool) {
        self.push(value);
        let index = self.values.len() - 1;
        let object = self.object[target.index()];
        self.object[index] = object;
        if moved {
            for (other, latest) in self.latest.iter_mut().enumerate() {
                if self.object[other] == object {
                    *latest = index as u32;
                }
            }
        }
    }

    /// The memory of a tensor changed: elements known before are no longer.
    pub(super) fn write(&mut self, origin: u32) {
        self.written.insert(origin);
    }

    pub(super) fn known_elements(&self, tensor: &TensorType) -> Option<Vec<f64>> {
        if tensor.memory.is_none() || self.written.contains(&tensor.origin) {
            return None;
        }
        tensor.known_elements()
    }

    pub(super) fn known_scalar(&self, tensor: &TensorType) -> Option<f64> {
        match self.known_elements(tensor)?.as_slice() {
            [value] => Some(*value),
            _ => None,
        }
    }

    pub(super) fn is_written(&self, tensor: &TensorType) -> bool {
        self.written.contains(&tensor.origin)
    }

    pub(super) fn into_parts(self) -> (Vec<Value>, Vec<Guard>) {
        (self.values, self.guards.into_inner())
    }

    pub(super) fn enter_vmap(&self) -> i64 {
        self.vmap_depth.set(self.vmap_depth.get().saturating_add(1));
        self.vmap_depth.get()
    }

    /// The level that was left.
    pub(super) fn leave_vmap(&self) -> i64 {
        let level = self.vmap_depth.get();
        self.vmap_depth.set((level - 1).max(0));
        level
    }

    /// Whether two sizes are equal; notes a guard when that holds only for the example's symbols.
    pub(super) fn same(&self, left: &Dim, right: &Dim) -> bool {
        if left.size != right.size {
            return false;
        }
        if (left.is_symbolic() || right.is_symbolic()) && !left.is_identical(right) {
            let guard = Guard { left: left.clone(), right: right.clone(), node: self.node };
            let mut guards = self.guards.borrow_mut();
            let seen = guards.iter().any(|g| g.left == guard.left && g.right == guard.right);
            if !seen && guards.len() < MAX_GUARDS {
                guards.push(guard);
            }
        }
        true
    }

    /// The shape that operands broadcast to.
    pub(super) fn broadcast<'a>(
        &self,
        shapes: impl IntoIterator<Item = &'a [Dim]>,
    ) -> Inferred<Shape> {
        Ok(shape::broadcast(shapes, |left, right| self.same(left, right))?)
    }

    /// `expand`: new leading dimensions, ones repeated, `-1` keeps.
    pub(super) fn expand(&self, tensor: &TensorType, sizes: &[Dim]) -> Inferred<TensorType> {
        Ok(region::expanded(tensor, sizes, |own, wanted| self.same(own, wanted))?)
    }
}
