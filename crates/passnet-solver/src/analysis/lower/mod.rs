//! Lowering: every output is pulled from the parameters, element by element, as a function of the kernel's loops.
//!
//! The loops are the dimensions of the largest output, split where a reshape on the way splits them. A reduction folds
//! loops of its own or loops that its result does not vary with. Views and copies only change indices.

mod activation;
mod address;
mod assign;
mod choice;
mod few;
mod interpolate;
mod mapped;
mod movement;
mod norm;
mod order;
mod outputs;
mod pointwise;
mod product;
mod reduce;
mod scalar;
mod scan;
mod values;
mod view;
mod window;

use self::address::mixed_radix;
use self::order::Sorted;
use super::body::{Body, Code, Guard, Kind, Store, Target, VarId};
use super::index::{AxisId, Index};
use super::space::coalesce;
use super::tiles::Tiles;
use super::{Piece, Refusal, Size, product, refuse};
use passnet_graph::infer::Value;
use passnet_graph::ops::{Bound, Class, Op};
use passnet_graph::{Arg, NodeId};
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

/// Loops are split at most this often.
const MAX_SPLITS: usize = 12;
/// A kernel longer than this is none that anybody wants to read.
const MAX_VARS: usize = 400;

/// A call, and where in its result a value is wanted.
#[derive(Debug, Clone, Copy)]
struct Wanted<'w, 'g> {
    node: NodeId,
    bound: &'w Bound<'g>,
    index: &'w [Index],
}

/// Lowers a piece to one kernel, or says why that is not possible.
pub fn lower(piece: &Piece) -> Result<Body, Refusal> {
    lower_as(piece, Liberty::default())
}

/// The same, where a fold may be computed again for every element that it is spread over, if these are few.
pub fn lower_repeating(piece: &Piece) -> Result<Body, Refusal> {
    lower_as(piece, Liberty { may_repeat: true, ..Liberty::default() })
}

/// The same, where what is joined may follow a loop that does not decide which part it is.
pub fn lower_joined(piece: &Piece) -> Result<Body, Refusal> {
    lower_as(piece, Liberty { may_join: true, ..Liberty::default() })
}

/// What a kernel may do that does not pay everywhere.
#[derive(Debug, Clone, Copy, Default)]
struct Liberty {
    /// A fold may be computed again for every element that it is spread over.
    may_repeat: bool,
    /// Conditions do without loops that do not decide them.
    may_join: bool,
}

fn lower_as(piece: &Piece, liberty: Liberty) -> Result<Body, Refusal> {
    let main = main_output(piece)?;
    let shape = piece.shape(main)?;
    // Loops go through the result as it lies in memory; what is updated may lie there with gaps.
    let order = match piece.updated_param(main) {
        Some(_) => None,
        None => piece.memory_order(main)?,
    };
    let order = order.unwrap_or_else(|| (0..shape.len()).collect());
    let mut layout: Vec<Vec<Size>> = order.iter().map(|dim| vec![shape[*dim].clone()]).collect();
    let mut folded: Option<Vec<Vec<Size>>> = None;
    for _ in 0..MAX_SPLITS {
        let mut lower = Lower::new(piece, &order, &layout, folded.clone())?;
        lower.liberty = liberty;
        let done = lower.run(main);
        if let Some((axis, parts)) = lower.split.take() {
            split(&mut layout, &mut lower.folded, axis, &parts);
            folded = lower.folded;
            continue;
        }
        if lower.folded.is_some() && folded.is_none() {
            // The loops that reductions brought along get their places first.
            folded = lower.folded;
            continue;
        }
        done?;
        let mut cut = lower.body.clone();
        let space = coalesce(&mut cut)?;
        if cut.in_tiles && Tiles::of(&cut, &space).is_none() {
            refuse!("a product that is not all that a kernel adds up");
        }
        return Ok(lower.body);
    }
    Err(Refusal::new("reshapes split the loops too often"))
}

/// The output with the most elements.
fn main_output(piece: &Piece) -> Result<NodeId, Refusal> {
    let mut best: Option<(i64, NodeId)> = None;
    for output in &piece.outputs {
        let elements = piece.tensor(*output)?.elements();
        if best.is_none_or(|(most, _)| elements >= most) {
            best = Some((elements, *output));
        }
    }
    best.map(|(_, output)| output).ok_or_else(|| Refusal::new("nothing is returned"))
}

fn split(
    layout: &mut [Vec<Size>],
    folded: &mut Option<Vec<Vec<Size>>>,
    axis: AxisId,
    parts: &[Size],
) {
    let axis = axis.index();
    let mut next = 0;
    for dim in layout.iter_mut().chain(folded.iter_mut().flatten()) {
        if axis < next + dim.len() {
            dim.splice(axis - next..=axis - next, parts.iter().cloned());
            return;
        }
        next += dim.len();
    }
}

/// One attempt with given loops.
struct Lower<'p> {
    piece: &'p Piece,
    body: Body,
    /// The index of every dimension of the main output.
    main: Vec<Index>,
    /// Loops that exist only to be folded, by reduced dimension; found on the way.
    folded: Option<Vec<Vec<Size>>>,
    folded_index: Vec<Index>,
    /// Which loops reductions fold, once one has decided it.
    reduced: Option<BTreeSet<AxisId>>,
    memo: BTreeMap<String, VarId>,
    /// How each value was first reached.
    reached: BTreeMap<NodeId, Vec<Index>>,
    guards: Vec<Guard>,
    names: BTreeMap<String, usize>,
    windows: usize,
    /// Under vmap: the index along each hidden dimension, by its nesting level.
    hidden: BTreeMap<i64, Index>,
    liberty: Liberty,
    /// A loop that must be split before this can work.
    split: Option<(AxisId, Vec<Size>)>,
}

impl<'p> Lower<'p> {
    fn new(
        piece: &'p Piece,
        order: &[usize],
        layout: &[Vec<Size>],
        folded: Option<Vec<Vec<Size>>>,
    ) -> Result<Self, Refusal> {
        let mut axes = Vec::new();
        let mut place = |dims: &[Vec<Size>]| -> Result<Vec<Index>, Refusal> {
            dims.iter()
                .map(|parts| {
                    let first = axes.len();
                    axes.extend(parts.iter().cloned());
                    mixed_radix(first, parts, piece.graphs)
                })
                .collect()
        };
        let mut main = vec![Index::fixed(0, piece.graphs); order.len()];
        for (dim, index) in order.iter().zip(place(layout)?) {
            main[*dim] = index;
        }
        let folded_index = place(folded.as_deref().unwrap_or_default())?;
        Ok(Lower {
            piece,
            body: Body { axes, ..Body::default() },
            main,
            folded,
            folded_index,
            reduced: None,
            memo: BTreeMap::new(),
            reached: BTreeMap::new(),
            guards: Vec::new(),
            names: BTreeMap::new(),
            windows: 0,
            hidden: BTreeMap::new(),
            liberty: Liberty::default(),
            split: None,
        })
    }

    fn run(&mut self, main: NodeId) -> Result<(), Refusal> {
        let piece = self.piece;
        let first = piece.last_value(main);
        let index = self.main.clone();
        let value = self.pull(first, &index)?;
        let mut stored = BTreeMap::from([(first, (value, index))]);
        let updates: Vec<(usize, NodeId)> = piece.updates().collect();
        for wanted in piece.outputs.iter().copied().chain(updates.iter().map(|(_, last)| *last)) {
            let last = piece.last_value(wanted);
            if let Entry::Vacant(entry) = stored.entry(last) {
                let index = self.place_of(last)?;
                let value = self.pull(last, &index)?;
                entry.insert((value, index));
            }
        }
        for (number, output) in piece.outputs.iter().enumerate() {
            if piece.updated_param(*output).is_some() {
                continue;
            }
            let (value, index) = &stored[&piece.last_value(*output)];
            // Two outputs that are one object share one store.
            let earlier = piece.outputs[..number]
                .iter()
                .any(|other| piece.last_value(*other) == piece.last_value(*output));
            if !earlier {
                self.store(Target::Output(number), *output, index.clone(), *value)?;
            }
        }
        for (param, last) in updates {
            let (whole, index) = stored[&last].clone();
            let param_node = NodeId::new(param);
            let part = self.stored_part(last, param_node, &index)?;
            let (guards, value) = part.unwrap_or((Vec::new(), whole));
            self.store(Target::Param(param), param_node, index, value)?;
            if let Some(store) = self.body.stores.last_mut() {
                store.guards = guards;
            }
        }
        self.check_updates()?;
        self.body.reduced = self.reduced.iter().flatten().copied().collect();
        self.check_idle_loops()?;
        self.check_reductions()
    }

    fn store(
        &mut self,
        target: Target,
        node: NodeId,
        index: Vec<Index>,
        value: VarId,
    ) -> Result<(), Refusal> {
        let shape = self.piece.shape(node)?;
        let order = match target {
            Target::Output(_) => self.piece.memory_order(node)?,
            Target::Param(_) => None,
        };
        let address = match order {
            None if self.piece.is_strided(node) => self.strided(&index, node)?,
            None => self.linear(&index, &shape)?,
            Some(order) => {
                let index: Vec<Index> = order.iter().map(|dim| index[*dim].clone()).collect();
                let shape: Vec<Size> = order.iter().map(|dim| shape[*dim].clone()).collect();
                self.linear(&index, &shape)?
            }
        };
        self.body.stores.push(Store { target, address, value, guards: Vec::new() });
        Ok(())
    }

    /// The value of a node at an index.
    fn pull(&mut self, node: NodeId, index: &[Index]) -> Result<VarId, Refusal> {
        let parts: Vec<String> =
            index.iter().map(Index::key).chain(self.guards.iter().map(Guard::key)).collect();
        let hidden: Vec<String> =
            self.hidden.iter().map(|(level, index)| format!("{level}@{}", index.key())).collect();
        let key = format!("{}|{}|{}", node.index(), parts.join("|"), hidden.join("|"));
        if let Some(var) = self.memo.get(&key) {
            return Ok(*var);
        }
        if self.body.vars.len() > MAX_VARS {
            refuse!("the kernel would be too long");
        }
        if self.guards.is_empty() && self.hidden.is_empty() {
            self.reached.entry(node).or_insert_with(|| index.to_vec());
        }
        let var = match self.piece.graph.call(node) {
            None => self.parameter(node, index)?,
            Some(call) => {
                let bound = call.bind().map_err(Refusal::new)?;
                if self.piece.is_tensor(node) {
                    self.piece.kind(node)?;
                }
                let var = self.call(Wanted { node, bound: &bound, index })?;
                let var = self.rounded(node, &bound, var);
                self.named(var, node)
            }
        };
        self.memo.insert(key, var);
        Ok(var)
    }

    /// Eager stores every result in the node's type. In half precision that shows, so it is done here too.
    fn rounded(&mut self, node: NodeId, bound: &Bound<'_>, var: VarId) -> VarId {
        // What is looked up or taken from a list has the type already that it had in memory.
        let converts = || {
            if bound.class() == Class::Indexing {
                return false;
            }
            let source = bound.has("input").then(|| self.argument(node, bound.arg("input")));
            source.flatten().is_some_and(|id| self.piece.dtypes(id) != self.piece.dtypes(node))
        };
        let computes = matches!(
            bound.class(),
            Class::Pointwise
                | Class::Reduction
                | Class::Scan
                | Class::Normalisation
                | Class::Pooling
                | Class::Resampling
                | Class::Contraction
        ) || converts();
        let half = self.piece.dtypes(node).iter().any(|dtype| dtype.is_float() && dtype.size() < 4);
        if !computes || !half || self.kind(var) != Kind::Float || self.is_stored_only(node) {
            return var;
        }
        let axes = self.body.vars[var].axes.clone();
        self.add(None, Kind::Float, Code::Round { value: var, node }, axes)
    }

    /// Whether a value goes nowhere but into memory, which rounds it anyway.
    fn is_stored_only(&self, node: NodeId) -> bool {
        let mut used = false;
        for (_, call) in self.piece.graph.calls() {
            call.for_each_input(|input| used |= input == node);
        }
        !used
    }

    /// Gives a value the graph's name for it, unless it has one already.
    fn named(&mut self, var: VarId, node: NodeId) -> VarId {
        let name = self.fresh(self.piece.name(node));
        let known = &mut self.body.vars[var];
        if known.name.is_none()
            && matches!(
                known.code,
                Code::Compute { .. } | Code::Reduce { .. } | Code::Scan { .. } | Code::Round { .. }
            )
        {
            known.name = Some(name);
        }
        var
    }

    /// A name for one more value of a node; none that another node has: captured graphs are full of `mask`, `mask_1`, `mask_2`.
    fn fresh(&mut self, base: &str) -> String {
        let nodes = self.piece.graph.nodes();
        let count = self.names.entry(base.to_string()).or_insert(0);
        *count += 1;
        if *count == 1 {
            return base.to_string();
        }
        loop {
            let name = format!("{base}_{count}");
            if nodes.iter().all(|node| *node.name != *name) {
                return name;
            }
            *count += 1;
        }
    }

    fn parameter(&mut self, node: NodeId, index: &[Index]) -> Result<VarId, Refusal> {
        let param = node.index();
        if !self.piece.is_tensor(node) {
            let kind = self.piece.kind(node)?;
            return Ok(self.add(None, kind, Code::Number { param }, BTreeSet::new()));
        }
        let kind = self.piece.kind(node)?;
        let address = match self.piece.is_strided(node) {
            true => self.strided(index, node)?,
            false => self.linear(index, &self.piece.shape(node)?)?,
        };
        let mut axes = self.axes_of(&address);
        if self.guards.iter().any(|guard| self.axes_of(&guard.index).is_empty()) {
            refuse!("a condition that holds in some graphs and not in others");
        }
        // A condition on loops that the place does not follow cannot lead outside.
        let mut guards = self.guards.clone();
        guards.retain(|guard| !self.axes_of(&guard.index).is_disjoint(&axes));
        if guards.is_empty() || guards.len() < self.guards.len() {
            self.check_has_elements(node)?;
        }
        if guards.iter().any(|guard| !self.axes_of(&guard.index).is_subset(&axes)) {
            refuse!("a condition looks at more loops than the place it guards");
        }
        guards.iter().for_each(|guard| axes.extend(self.axes_of(&guard.index)));
        let name = self.fresh(self.piece.name(node));
        Ok(self.add(Some(name), kind, Code::Load { param, address, guards }, axes))
    }

    /// The value of a call at an index.
    fn call(&mut self, wanted: Wanted<'_, '_>) -> Result<VarId, Refusal> {
        let Wanted { node, bound, index } = wanted;
        if bound.is_random() {
            refuse!("`{}` draws random numbers", self.piece.name(node));
        }
        match bound.op {
            Op::Dropout | Op::Dropout1d | Op::Dropout2d | Op::Dropout3d | Op::AlphaDropout => {
                return self.input(node, bound, "input", index);
            }
            Op::Item => return self.input(node, bound, "input", &[]),
            Op::AddBatchDim | Op::RemoveBatchDim => return self.mapped(wanted),
            _ if bound.class() == Class::Indexing => return self.indexing(wanted),
            _ => {}
        }
        match bound.class() {
            Class::Pointwise => self.pointwise(wanted),
            Class::View => self.view(wanted),
            Class::Movement => self.movement(wanted),
            Class::Reduction if self.second(node, bound).is_some() => self.pointwise(wanted),
            Class::Reduction => self.reduction(wanted),
            Class::Scan => self.scan(wanted),
            Class::Normalisation => self.normalisation(wanted),
            Class::Pooling | Class::Resampling => self.window(wanted),
            Class::Creation => self.creation(wanted),
            Class::Contraction => self.product(wanted),
            Class::Transform if bound.op == Op::Argsort => self.sorted(wanted, Sorted::Places),
            _ => Err(self.unsupported(bound)),
        }
    }

    /// The parameter that holds the second tensor of `max` and `min`, which may stand where others have a dimension.
    fn second(&self, node: NodeId, bound: &Bound<'_>) -> Option<&'static str> {
        let parameter = if bound.has("other") { "other" } else { "dim" };
        let takes_two = matches!(bound.op, Op::Max | Op::Min) && bound.has(parameter);
        let tensor = self.argument(node, bound.arg(parameter)).filter(|_| takes_two)?;
        self.piece.is_tensor(tensor).then_some(parameter)
    }

    fn unsupported(&self, bound: &Bound<'_>) -> Refusal {
        Refusal::new(format!("`{}` has no loop form here", bound.op.name()))
    }

    /// The node that an argument is, with updates in place taken into account.
    fn argument(&self, call: NodeId, arg: &Arg) -> Option<NodeId> {
        arg.as_node().map(|input| self.piece.current(call, input))
    }

    /// A tensor argument at an index of its own.
    fn input(
        &mut self,
        call: NodeId,
        bound: &Bound<'_>,
        name: &str,
        index: &[Index],
    ) -> Result<VarId, Refusal> {
        match self.argument(call, bound.arg(name)) {
            Some(input) => self.pull(input, index),
            None => Err(Refusal::new(format!("`{name}` of `{}` is no tensor", bound.op.name()))),
        }
    }

    fn input_node(&self, call: NodeId, bound: &Bound<'_>, name: &str) -> Result<NodeId, Refusal> {
        self.argument(call, bound.arg(name))
            .ok_or_else(|| Refusal::new(format!("`{name}` of `{}` is no tensor", bound.op.name())))
    }

    /// A dimension argument.
    fn dim(&self, arg: &Arg, rank: usize) -> Result<usize, Refusal> {
        let value = arg.as_int().ok_or_else(|| Refusal::new("a dimension is not a number"))?;
        let resolved = if value < 0 { value + rank as i64 } else { value };
        let resolved = usize::try_from(resolved).ok().filter(|dim| *dim < rank.max(1));
        resolved.ok_or_else(|| Refusal::new("a dimension is out of range"))
    }

    fn zero(&self) -> Index {
        Index::fixed(0, self.piece.graphs)
    }

    fn fixed(&self, value: i64) -> Size {
        Size::fixed(value, self.piece.graphs)
    }

    fn elements(&self, sizes: &[Size]) -> Result<Size, Refusal> {
        product(sizes, self.piece.graphs)
    }

    /// Whether a node yields a list of tensors.
    fn is_list(&self, node: NodeId) -> bool {
        matches!(self.piece.values(node).first(), Some(Value::Sequence(_)))
    }
}
