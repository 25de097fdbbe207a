//! From a graph with numbers to a graph that follows its symbols.
//!
//! Extraction writes sizes into the code: `x.view(1, 197, 768)`. When an input changes its size, those of these
//! numbers that came from it must change too. One pass of inference with symbolic inputs finds out which: before
//! each call its literal sizes are compared with what is known about the call's input, and replaced by expressions
//! over the symbols where that explains them. The rules, in order of trust: a reshape keeps the number of elements,
//! an expansion and a slice follow the dimension they act on, the first size of a shape is the batch, a size that
//! equals a known symbolic size is that size.

use super::literals::{self, Use};
use crate::graph::Annotation;
use crate::infer::{Dim, TensorType, Value, infer_with, inputs_from};
use crate::read::{Constraints, GraphFolder, ShapeDim};
use crate::{Arg, Call, Graph, NodeId, NodeKind};
use std::collections::BTreeMap;

/// A graph whose sizes are expressions over the symbols of its constraints.
#[derive(Debug)]
pub struct Generalised {
    /// For every literal size, in order of calls and of sizes in a call, what it stands for.
    sizes: Vec<Dim>,
    /// What is known of every node of the graph, in its order.
    values: Vec<Value>,
}

impl Generalised {
    /// Generalises over the symbols in `folder.constraints`.
    pub fn new(folder: &GraphFolder) -> Self {
        let template = Template::new(&folder.graph);
        let mut inputs = inputs_from(folder);
        // Without metas there is nothing to follow; inference says so.
        inputs.resize_with(folder.graph.placeholder_count(), || Value::None);
        inputs.extend(template.literals.iter().map(|size| Value::int(*size)));
        let mut known = Known::new(&folder.constraints);
        let inference = infer_with(&template.graph, &inputs, |id, call, values| {
            if let Some(before) = id.index().checked_sub(1) {
                known.learn(&values[before]);
            }
            let Some((how, sizes)) = read_sizes(call, values, &template) else { return };
            let input = call.args.first().and_then(Arg::as_node);
            let input = input.and_then(|id| values[id.index()].as_tensor());
            let explained = known.explain(how, input, &sizes);
            for (size, dim) in sizes.iter().zip(explained) {
                if let (Some(place), Some(dim)) = (size.place, dim) {
                    values[place.index()] = Value::dim(dim);
                }
            }
        });
        let size = |index: usize| match inference.values.get(template.first_size + index) {
            Some(Value::Scalar(scalar)) => scalar.as_dim(),
            _ => None,
        };
        let sizes = template.literals.iter().enumerate();
        let sizes = sizes.map(|(i, v)| size(i).unwrap_or(Dim::fixed(*v))).collect();
        let mut values = inference.values;
        let behind = (template.first_size + template.literals.len()).min(values.len());
        values.drain(template.first_size.min(behind)..behind);
        Self { sizes, values }
    }

    /// The sizes of a tensor that a node is, or that is an element of it, of this rank; as expressions over the symbols.
    pub(super) fn shape(&self, node: NodeId, rank: usize) -> Option<&[Dim]> {
        fn find(value: &Value, rank: usize) -> Option<&[Dim]> {
            match value {
                Value::Tensor(tensor) => (tensor.shape.len() == rank).then_some(&tensor.shape[..]),
                Value::Sequence(items) => items.iter().find_map(|item| find(item, rank)),
                _ => None,
            }
        }
        find(self.values.get(node.index())?, rank)
    }

    /// The graph for given values of the symbols; `None` when a size cannot be computed.
    pub fn graph(&self, graph: &Graph, symbols: &impl Fn(&str) -> Option<i64>) -> Option<Graph> {
        let mut sizes = self.sizes.iter();
        let mut copy = graph.clone();
        let mut missing = false;
        for (_, call) in copy.calls_mut() {
            for_each_literal(call, |arg, _| {
                match sizes.next().and_then(|size| size.evaluate(symbols)) {
                    Some(size) => *arg = Arg::Int(size),
                    None => missing = true,
                }
            });
        }
        (!missing).then_some(copy)
    }
}

/// Visits the positive literal sizes of a call.
fn for_each_literal(call: &mut Call, mut visit: impl FnMut(&mut Arg, i64)) {
    for size in literals::sizes(call).map(|(_, sizes)| sizes).unwrap_or_default() {
        if let Arg::Int(value @ 1..) = *size.arg {
            visit(size.arg, value);
        }
    }
}

/// The graph with every literal size as an argument of its own, behind the others.
struct Template {
    graph: Graph,
    first_size: usize,
    literals: Vec<i64>,
}

impl Template {
    fn new(graph: &Graph) -> Self {
        let first_size = graph.placeholder_count();
        let mut literals = Vec::new();
        for (_, call) in graph.calls() {
            for_each_literal(&mut call.clone(), |_, value| literals.push(value));
        }
        let mut template = Graph::new();
        for node in graph.placeholders() {
            if let NodeKind::Placeholder(annotation) = node.kind {
                template.push_placeholder(node.name.clone(), annotation, node.line);
            }
        }
        for index in 0..literals.len() {
            template.push_placeholder(format!("size {index}"), Annotation::SymInt, 0);
        }
        let mut sizes = (first_size..).map(NodeId::new);
        for (id, call) in graph.calls() {
            let mut call = call.clone();
            call.map_inputs(|input| {
                let behind = if input.index() >= first_size { literals.len() } else { 0 };
                Arg::Node(NodeId::new(input.index() + behind))
            });
            for_each_literal(&mut call, |arg, _| {
                if let Some(size) = sizes.next() {
                    *arg = Arg::Node(size);
                }
            });
            let node = graph.node(id);
            template.push_call(node.name.clone(), call, node.line);
        }
        Self { graph: template, first_size, literals }
    }

    /// Whether a node stands for a literal size.
    fn is_size(&self, id: NodeId) -> bool {
        (self.first_size..self.graph.placeholder_count()).contains(&id.index())
    }
}

/// A size as a call gives it.
struct Given {
    /// Where its value is kept, for a literal.
    place: Option<NodeId>,
    /// Its value; -1 and unknown ones have none.
    dim: Option<Dim>,
    axis: isize,
}

fn read_sizes(call: &Call, values: &[Value], template: &Template) -> Option<(Use, Vec<Given>)> {
    let mut call = call.clone();
    let (how, sizes) = literals::sizes(&mut call)?;
    let given = |size: literals::Size<'_>| match *size.arg {
        Arg::Node(id) => Given {
            place: template.is_size(id).then_some(id),
            dim: match &values[id.index()] {
                Value::Scalar(scalar) => scalar.as_dim(),
                _ => None,
            },
            axis: size.axis,
        },
        _ => Given { place: None, dim: None, axis: size.axis },
    };
    let given: Vec<Given> = sizes.into_iter().map(given).collect();
    given.iter().any(|size| size.place.is_some()).then_some((how, given))
}

/// What is known while walking through the graph.
struct Known {
    /// The symbol that stands first in the inputs' shapes.
    batch: Option<Dim>,
    /// Symbolic sizes by their value, the first one met.
    sizes: BTreeMap<i64, Dim>,
}

impl Known {
    fn new(constraints: &Constraints) -> Self {
        let example = |name: &str| constraints.symbols.iter().find(|(symbol, _)| symbol == name);
        let first = constraints.input_shapes.iter().find_map(|(_, shape)| match shape.first() {
            Some(ShapeDim::Symbol(name)) => example(name),
            _ => None,
        });
        let batch = first.map(|(name, value)| Dim::symbol(name, *value));
        let mut known = Self { batch, sizes: BTreeMap::new() };
        let symbols = constraints.symbols.iter().map(|(name, value)| Dim::symbol(name, *value));
        let symbols: Vec<Dim> = symbols.collect();
        symbols.iter().for_each(|symbol| known.add(symbol));
        // One more than a symbol: a class token before the others, a bound that is included.
        symbols.iter().filter_map(|symbol| symbol.offset(1).ok()).for_each(|next| known.add(&next));
        known
    }

    fn add(&mut self, dim: &Dim) {
        // The number one means too many things to say anything.
        if dim.is_symbolic() && dim.size > 1 {
            self.sizes.entry(dim.size).or_insert_with(|| dim.clone());
        }
    }

    fn learn(&mut self, value: &Value) {
        match value {
            Value::Tensor(tensor) => tensor.shape.iter().for_each(|dim| self.add(dim)),
            Value::Scalar(scalar) => {
                if let Some(dim) = scalar.as_dim() {
                    self.add(&dim);
                }
            }
            Value::Sequence(items) => items.iter().for_each(|item| self.learn(item)),
            _ => {}
        }
    }

    /// What each size stands for; `None` for those that are just numbers.
    fn explain(&self, how: Use, input: Option<&TensorType>, sizes: &[Given]) -> Vec<Option<Dim>> {
        if how == Use::Reshape {
            return input.and_then(|input| self.reshape(input, sizes)).unwrap_or_default();
        }
        let rank = sizes.len();
        let explain = |size: &Given| -> Option<Dim> {
            let dim = size.dim.as_ref()?;
            let value = dim.size;
            let seen = || self.sizes.get(&value).cloned();
            let batch = || self.batch.clone().filter(|batch| size.axis == 0 && batch.size == value);
            match how {
                Use::Reshape => None,
                Use::Expand => {
                    let rank_in = input?.rank();
                    let own = (size.axis as usize + rank_in)
                        .checked_sub(rank)
                        .and_then(|axis| input?.shape.get(axis));
                    match own {
                        Some(own) if own.is_symbolic() && own.size == value => Some(own.clone()),
                        Some(own) if own.size == value && value != 1 => None,
                        _ => batch().or_else(seen),
                    }
                }
                Use::Repeat => batch(),
                Use::Create if rank == 1 => seen(),
                Use::Create => batch().or_else(seen),
                Use::Count | Use::Resample => seen(),
                Use::Slice => {
                    let shape = &input?.shape;
                    let axis = match usize::try_from(size.axis) {
                        Ok(axis) => axis,
                        Err(_) => shape.len().checked_sub(size.axis.unsigned_abs())?,
                    };
                    let own = shape.get(axis).filter(|own| own.size == value && own.is_symbolic());
                    own.cloned().or_else(seen)
                }
            }
        };
        sizes.iter().map(explain).collect()
    }

    /// Splits both shapes into the smallest runs with equal products, and explains each run by itself.
    fn reshape(&self, input: &TensorType, sizes: &[Given]) -> Option<Vec<Option<Dim>>> {
        let outs = resolve(input, sizes)?;
        let ins = &input.shape;
        let mut explained = vec![None; outs.len()];
        let (mut i, mut j) = (0, 0);
        while i < ins.len() && j < outs.len() {
            let (first_in, first_out) = (i, j);
            let (mut a, mut b) = (ins[i].size, outs[j]);
            (i, j) = (i + 1, j + 1);
            while a != b {
                if a < b {
                    a = a.checked_mul(ins.get(i)?.size)?;
                    i += 1;
                } else {
                    b = b.checked_mul(*outs.get(j)?)?;
                    j += 1;
                }
            }
            // Ones at the end belong to the last run.
            if ins[i..].iter().all(|dim| dim.size == 1) && outs[j..].iter().all(|out| *out == 1) {
                (i, j) = (ins.len(), outs.len());
            }
            let run = self.run(&ins[first_in..i], &outs[first_out..j], first_out == 0)?;
            explained[first_out..j].clone_from_slice(&run);
        }
        Some(explained)
    }

    /// Explains the sizes `outs` whose product is that of `ins`.
    fn run(&self, ins: &[Dim], outs: &[i64], leads: bool) -> Option<Vec<Option<Dim>>> {
        let mut left = ins.iter().try_fold(Dim::fixed(1), |product, dim| product.mul(dim)).ok()?;
        let mut explained = vec![None; outs.len()];
        if !left.is_symbolic() {
            return Some(explained);
        }
        if let [single] = explained.as_mut_slice() {
            *single = Some(left);
            return Some(explained);
        }
        let mut used = vec![false; ins.len()];
        let mut open = Vec::new();
        for (place, &out) in outs.iter().enumerate() {
            let own = ins
                .iter()
                .enumerate()
                .find(|(k, dim)| !used[*k] && dim.is_symbolic() && dim.size == out);
            let batch = self.batch.as_ref().filter(|b| leads && place == 0 && b.size == out);
            let seen = self.sizes.get(&out);
            let candidates = batch.into_iter().chain(own.map(|(_, dim)| dim)).chain(seen);
            if let Some((dim, rest)) =
                candidates.filter_map(|dim| Some((dim, exact(&left, dim)?))).next()
            {
                if let Some((k, _)) = own.filter(|(_, own)| own.is_identical(dim)) {
                    used[k] = true;
                }
                explained[place] = Some(dim.clone());
                left = rest;
            } else if let Some(rest) = exact(&left, &Dim::fixed(out)) {
                left = rest;
            } else {
                open.push(place);
            }
        }
        // What is left over goes to the first size that nothing explains: the number of windows, not their size.
        match open.split_first() {
            Some((&first, others)) => {
                let others = others.iter().map(|&place| outs[place]).product();
                explained[first] = Some(left.divided(others).ok()?);
            }
            None if left.is_symbolic() => {
                let place = outs.iter().position(|out| *out == 1).unwrap_or(outs.len() - 1);
                let dim = explained[place].take().unwrap_or(Dim::fixed(outs[place]));
                explained[place] = Some(dim.mul(&left).ok()?);
            }
            None => {}
        }
        Some(explained)
    }
}

/// `a / b` where that is exact for all values of the symbols.
fn exact(a: &Dim, b: &Dim) -> Option<Dim> {
    let rest = a.modulo(b).ok()?;
    (rest.size == 0 && !rest.is_symbolic()).then(|| a.floor_div(b).ok()).flatten()
}

/// The numbers of the new shape, with the size that was left open.
fn resolve(input: &TensorType, sizes: &[Given]) -> Option<Vec<i64>> {
    let given = sizes.iter().filter_map(|size| size.dim.as_ref());
    let product = given.clone().try_fold(1_i64, |product, dim| product.checked_mul(dim.size))?;
    let open = match sizes.len() - given.count() {
        0 => 0,
        1 => input.elements().checked_div(product)?,
        _ => return None,
    };
    let outs: Vec<i64> =
        sizes.iter().map(|size| size.dim.as_ref().map_or(open, |dim| dim.size)).collect();
    let total = outs.iter().try_fold(1_i64, |product, size| product.checked_mul(*size))?;
    (total == input.elements() && total > 0).then_some(outs)
}
