//! What one kernel computes: loops, values in order of definition, and where results go.

use super::index::{AxisId, Index};
use super::space::Space;
use super::{Piece, Size};
use crate::expression::{Binary, Expr, Formula, Literal};
use passnet_graph::NodeId;
use std::collections::BTreeSet;

pub use super::ids::VarId;

/// A row up to this long is held whole; a longer one is walked through in blocks.
pub const LONGEST_ROW: i64 = 16384;
/// No place is as large: written where there is none.
pub const GREATEST_INTEGER: i64 = i64::MAX;

/// Bytes that memory moves while a lane computes a function, and while it does anything else.
const BYTES_OF_FUNCTION: f64 = 4.0;
const BYTES_OF_STEP: f64 = 0.25;

/// What kind of number a value is inside a kernel. Floats are computed in float32.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    Bool,
    Int,
    Float,
}

/// How a reduction folds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fold {
    Sum,
    Max,
    Min,
}

/// A condition on an index: `low <= index < high`, a side left out where it always holds.
#[derive(Debug, Clone)]
pub struct Guard {
    pub index: Index,
    pub low: Option<Size>,
    pub high: Option<Size>,
}

impl Guard {
    /// Whether it holds in all graphs or in none, where no loop decides it.
    pub fn settled(&self) -> Option<bool> {
        if !self.index.terms.is_empty() {
            return None;
        }
        let places = self.index.constant.values().iter().enumerate();
        let holds = |(graph, place): (usize, &i64)| {
            let is_low = self.low.as_ref().is_some_and(|low| *place < low.values()[graph]);
            let is_high = self.high.as_ref().is_some_and(|high| *place >= high.values()[graph]);
            !is_low && !is_high
        };
        let mut all = places.map(holds);
        let first = all.next()?;
        all.all(|other| other == first).then_some(first)
    }

    pub fn key(&self) -> String {
        let side = |size: &Option<Size>| size.as_ref().map(|size| size.values().to_vec());
        format!("{}:{:?}:{:?}", self.index.key(), side(&self.low), side(&self.high))
    }
}

#[derive(Debug, Clone)]
pub enum Code {
    Load {
        param: usize,
        address: Index,
        guards: Vec<Guard>,
    },
    /// A number given to the wrapper.
    Number {
        param: usize,
    },
    /// Arithmetic over other values.
    Compute {
        formula: Formula,
        operands: Vec<VarId>,
    },
    /// Rounded to the type that a node of the pattern has, as eager rounds what it stores.
    Round {
        value: VarId,
        node: NodeId,
    },
    /// A size as a number.
    Extent(Size),
    /// An index as a number.
    Place(Index),
    /// Whether guards hold, as a condition.
    Inside(Vec<Guard>),
    /// A fold over the reduced loops.
    Reduce {
        fold: Fold,
        value: VarId,
    },
    /// Running sums along the reduced loops.
    Scan {
        value: VarId,
    },
    /// The whole numbers of a row along the reduced loops, in rising order.
    Sort {
        value: VarId,
        /// Whether all of them have 32 bits.
        is_narrow: bool,
    },
    /// A fold over small unrolled loops, `(variable, count)` each; `body` is evaluated inside them.
    Window {
        fold: Fold,
        loops: Vec<(usize, i64)>,
        body: Vec<VarId>,
        value: VarId,
    },
}

impl Code {
    /// The number that is written, where nothing else is.
    pub fn as_literal(&self) -> Option<Literal> {
        match self {
            Code::Compute { formula, .. } => formula.as_literal(),
            _ => None,
        }
    }
}

/// Functions that cost as little as arithmetic.
const CHEAP: [&str; 4] = ["tl.where", "tl.abs", "tl.minimum", "tl.maximum"];

/// How many functions and quotients a formula computes: each costs as much as a dozen sums.
pub fn functions_of(formula: &Formula) -> usize {
    let mut count = 0;
    formula.for_each(&mut |part| match part {
        Expr::Call(function, ..) if !CHEAP.contains(function) => count += 1,
        Expr::Binary(Binary::Over, ..) => count += 1,
        _ => {}
    });
    count
}

#[derive(Debug, Clone)]
pub struct Var {
    /// The graph's name for it; helpers have none and are written where they are used.
    pub name: Option<String>,
    pub kind: Kind,
    pub code: Code,
    /// The loops it varies with.
    pub axes: BTreeSet<AxisId>,
}

/// Where a result goes.
#[derive(Debug, Clone)]
pub struct Store {
    /// The output's number, or the parameter that is updated in place.
    pub target: Target,
    pub address: Index,
    pub value: VarId,
    /// Where it is stored; everywhere if there are none.
    pub guards: Vec<Guard>,
}

impl Store {
    /// Whether its place moves along some of these loops.
    pub fn moves_along(&self, axes: &BTreeSet<AxisId>) -> bool {
        let mut moves = false;
        self.address.for_each_axis(&mut |axis| moves |= axes.contains(&axis));
        moves
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target {
    Output(usize),
    Param(usize),
}

/// The two folds of a variance: the sum of a row, of which nothing but its mean is made, and that of the squares of what the
/// mean leaves of each value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moments {
    pub total: VarId,
    pub mean: VarId,
    pub squares: VarId,
}

impl Moments {
    /// Whether a value is one of the two.
    pub fn has(self, var: VarId) -> bool {
        self.total == var || self.squares == var
    }
}

/// A kernel before it is text.
#[derive(Debug, Clone, Default)]
pub struct Body {
    pub axes: Vec<Size>,
    /// The loops that reductions fold, outermost first.
    pub reduced: Vec<AxisId>,
    pub vars: Vec<Var>,
    /// Folds that one walk through a row can give together.
    pub moments: Vec<Moments>,
    pub stores: Vec<Store>,
    /// Whether its fold is a product of which a program computes a tile.
    pub in_tiles: bool,
}

impl std::ops::Index<AxisId> for Vec<Size> {
    type Output = Size;

    fn index(&self, axis: AxisId) -> &Size {
        &self[axis.index()]
    }
}

impl std::ops::IndexMut<AxisId> for Vec<Size> {
    fn index_mut(&mut self, axis: AxisId) -> &mut Size {
        &mut self[axis.index()]
    }
}

impl std::ops::Index<VarId> for Vec<Var> {
    type Output = Var;

    fn index(&self, var: VarId) -> &Var {
        &self[var.index()]
    }
}

impl std::ops::IndexMut<VarId> for Vec<Var> {
    fn index_mut(&mut self, var: VarId) -> &mut Var {
        &mut self[var.index()]
    }
}

impl Body {
    /// The loops, outermost first.
    pub fn axis_ids(&self) -> impl Iterator<Item = AxisId> + use<> {
        (0..self.axes.len()).map(AxisId::new)
    }

    /// The values, in order of definition.
    pub fn var_ids(&self) -> impl Iterator<Item = VarId> + use<> {
        (0..self.vars.len()).map(VarId::new)
    }

    /// The values that another one is made of.
    pub fn operands(&self, id: VarId) -> Vec<VarId> {
        let mut found = Vec::new();
        let index = |index: &Index, found: &mut Vec<VarId>| {
            index.for_each_value(&mut |var| found.push(var));
        };
        match &self.vars[id].code {
            Code::Load { address, guards, .. } => {
                index(address, &mut found);
                guards.iter().for_each(|guard| index(&guard.index, &mut found));
            }
            Code::Inside(guards) => {
                guards.iter().for_each(|guard| index(&guard.index, &mut found));
            }
            Code::Compute { operands, .. } => found.extend(operands),
            Code::Place(place) => index(place, &mut found),
            Code::Reduce { value, .. }
            | Code::Scan { value }
            | Code::Sort { value, .. }
            | Code::Round { value, .. } => found.push(*value),
            Code::Window { body, .. } => {
                let inside: BTreeSet<VarId> = body.iter().copied().collect();
                for var in body {
                    found.extend(self.operands(*var).into_iter().filter(|v| !inside.contains(v)));
                }
            }
            Code::Number { .. } | Code::Extent(_) => {}
        }
        found
    }

    /// Every address that is read or written, and every index that a condition looks at.
    pub fn for_each_index(&self, visit: &mut impl FnMut(&Index)) {
        for var in &self.vars {
            match &var.code {
                Code::Load { address, guards, .. } => {
                    visit(address);
                    guards.iter().for_each(|guard| visit(&guard.index));
                }
                Code::Place(index) => visit(index),
                Code::Inside(guards) => guards.iter().for_each(|guard| visit(&guard.index)),
                _ => {}
            }
        }
        for store in &self.stores {
            visit(&store.address);
            store.guards.iter().for_each(|guard| visit(&guard.index));
        }
    }

    /// Whether some loop has no step in some graph, so that nothing is computed there.
    pub fn is_idle_somewhere(&self) -> bool {
        self.axes.iter().any(|size| size.values().contains(&0))
    }

    /// Bytes that it reads and writes in one graph; no tensor is read in parts.
    pub fn moved_bytes(&self, piece: &Piece, graph: usize) -> f64 {
        let loaded = self.vars.iter().filter_map(|var| match var.code {
            Code::Load { param, .. } => Some(NodeId::new(param)),
            _ => None,
        });
        let stored = self.stores.iter().map(|store| match store.target {
            Target::Output(number) => piece.outputs[number],
            Target::Param(param) => NodeId::new(param),
        });
        let loaded: BTreeSet<NodeId> = loaded.collect();
        let touched = loaded.into_iter().chain(stored);
        touched.map(|id| piece.bytes(id, graph)).sum()
    }

    /// What it costs in one graph, in bytes that memory moves meanwhile: what it moves, and what it computes. Its loops are made
    /// few already; rows and columns make tiles, and all loops around them repeat what does not vary with them.
    pub fn cost(&self, piece: &Piece, space: &Space, graph: usize) -> f64 {
        let slabs = space.kept.iter().rev().skip(2);
        let slabs: BTreeSet<AxisId> = slabs.copied().collect();
        let loops: BTreeSet<AxisId> = space.kept.iter().chain(&space.reduced).copied().collect();
        let work = self.live().into_iter().map(|id| {
            let var = &self.vars[id];
            let steps = loops.iter().filter(|axis| slabs.contains(axis) || var.axes.contains(axis));
            let steps = steps.map(|axis| self.axes[*axis].values()[graph] as f64);
            let each = match &var.code {
                Code::Compute { formula, .. } => {
                    BYTES_OF_STEP + BYTES_OF_FUNCTION * functions_of(formula) as f64
                }
                _ => BYTES_OF_STEP,
            };
            each * steps.product::<f64>()
        });
        self.moved_bytes(piece, graph) + work.sum::<f64>()
    }

    /// What is stored, and the values that its places hang on.
    pub fn stored(&self) -> Vec<VarId> {
        let mut stored = Vec::new();
        for store in &self.stores {
            stored.push(store.value);
            let indices = store.guards.iter().map(|guard| &guard.index).chain([&store.address]);
            indices.for_each(|index| index.for_each_value(&mut |var| stored.push(var)));
        }
        stored
    }

    /// What the results are made of.
    pub fn live(&self) -> BTreeSet<VarId> {
        let mut live = BTreeSet::new();
        let mut todo = self.stored();
        while let Some(var) = todo.pop() {
            if live.insert(var) {
                todo.extend(self.operands(var));
                // Values inside a window, too.
                if let Code::Window { body, .. } = &self.vars[var].code {
                    todo.extend(body);
                }
            }
        }
        live
    }
}
