//! Mean, spread and bounds of every intermediate, without running the graph, or as a run showed them.
//!
//! Pieces cut out of a graph need plausible inputs: floats of the right size, indices that are legal. Both follow
//! from what is recorded about the graph's own inputs, one rule per family of operations (`rules`).

mod rules;
mod stat;

#[cfg(test)]
mod tests;

pub use stat::Stat;

use crate::dtype::{DType, Kind};
use crate::graph::effects::Effects;
use crate::graph::{Graph, NodeId, NodeKind};
use crate::infer::{Inference, Scalar, Value};
use crate::read::{GraphFolder, TensorMeta};
use rustc_hash::{FxHashMap, FxHashSet};

/// The share of the recorded spread that a replayed input has: the reference draws `0.2 * std` around the mean.
pub const REPLAYED_SPREAD: f64 = 0.2;
/// What a replay assumes where nothing is recorded.
const DEFAULT_STD: f64 = 0.1;

/// What is known of a node's elements; a tuple has one entry for each of its tensors.
#[derive(Debug, Clone, PartialEq)]
enum Known {
    Nothing,
    One(Stat),
    Each(Vec<Option<Stat>>),
}

/// What is known of every value of a graph.
#[derive(Debug)]
pub struct Stats {
    values: Vec<Known>,
}

/// What a run of a graph showed of one tensor.
#[derive(Debug, Clone, PartialEq)]
pub struct Seen {
    /// The call that gave it.
    pub node: NodeId,
    /// Where the tensor is inside a tuple.
    pub path: Vec<usize>,
    /// Of its elements.
    pub stat: Stat,
}

impl Stats {
    /// What is known of a tensor.
    pub fn of(&self, id: NodeId) -> Option<Stat> {
        self.at(id, &[])
    }

    /// What is known of a tensor inside a tuple.
    pub fn at(&self, id: NodeId, path: &[usize]) -> Option<Stat> {
        match (self.values.get(id.index())?, path) {
            (Known::One(stat), _) => Some(*stat),
            (Known::Each(items), [index, ..]) => items.get(*index).copied().flatten(),
            (Known::Each(items), []) => items.first().copied().flatten(),
            (Known::Nothing, _) => None,
        }
    }

    /// Mean and spread as a run showed them, in place of those that were derived. Bounds stay those that always hold; the
    /// extremes of one run are none, except for integers of which nothing else is known. Memory that is written to later
    /// is not what the run saw, so what is derived stays.
    pub fn measured(&mut self, graph: &Graph, types: &Inference, seen: &[Seen]) {
        let effects = Effects::of(graph);
        let nodes = || (0..graph.nodes().len()).map(NodeId::new);
        let written: FxHashSet<NodeId> = nodes().flat_map(|id| effects.writes(id)).collect();
        for one in seen.iter().filter(|one| !written.contains(&effects.root(one.node))) {
            let (Some(known), Some(value)) =
                (self.values.get_mut(one.node.index()), types.values.get(one.node.index()))
            else {
                continue;
            };
            match (value, &one.path[..]) {
                (Value::Tensor(tensor), []) => {
                    let derived = match known {
                        Known::One(stat) => Some(*stat),
                        _ => None,
                    };
                    if let Some(stat) = one.stat.within_bounds_of(derived, tensor.dtype) {
                        *known = Known::One(stat);
                    }
                }
                (Value::Sequence(items), [index]) => {
                    let Some(Value::Tensor(tensor)) = items.get(*index) else { continue };
                    let mut each = match known {
                        Known::Each(stats) => stats.clone(),
                        Known::One(stat) => vec![Some(*stat); items.len()],
                        Known::Nothing => vec![None; items.len()],
                    };
                    if let Some(place) = each.get_mut(*index)
                        && let Some(stat) = one.stat.within_bounds_of(*place, tensor.dtype)
                    {
                        *place = Some(stat);
                        *known = Known::Each(each);
                    }
                }
                _ => {}
            }
        }
    }

    /// What was written shows in every earlier value of the same memory.
    fn write_through(
        &mut self,
        effects: &Effects,
        writer: NodeId,
        sharing: &FxHashMap<NodeId, Vec<NodeId>>,
    ) {
        let Some(written) = self.of(writer) else { return };
        for alias in effects.writes(writer).filter_map(|root| sharing.get(&root)).flatten() {
            if let Some(Known::One(stat)) = self.values.get_mut(alias.index()) {
                *stat = stat.mix(0.5, written);
            }
        }
    }
}

/// Follows the recorded statistics of a graph's inputs through its operations.
pub fn propagate(folder: &GraphFolder, types: &Inference) -> Stats {
    propagate_with(folder, types, 1.0)
}

/// The same with inputs whose spread is `spread` times the recorded one.
pub fn propagate_with(folder: &GraphFolder, types: &Inference, spread: f64) -> Stats {
    let mut stats = Stats { values: Vec::with_capacity(types.values.len()) };
    let effects = Effects::of(&folder.graph);
    let mut sharing: FxHashMap<NodeId, Vec<NodeId>> = FxHashMap::default();
    for (index, node) in folder.graph.nodes().iter().enumerate() {
        let id = NodeId::new(index);
        let known = match &node.kind {
            NodeKind::Placeholder(_) => {
                match folder.metas.get(index).and_then(|m| input(m, spread)) {
                    Some(stat) => Known::One(stat),
                    None => Known::Nothing,
                }
            }
            NodeKind::Call(call) => rules::apply(&stats, types, id, call),
        };
        stats.values.push(settle(known, types.value(id)));
        if effects.mutates(id) {
            stats.write_through(&effects, id, &sharing);
        }
        sharing.entry(effects.root(id)).or_default().push(id);
    }
    stats
}

/// The statistics with which an input is drawn.
fn input(meta: &TensorMeta, spread: f64) -> Option<Stat> {
    let bounds = (meta.min_val.map(|n| n.as_f64()), meta.max_val.map(|n| n.as_f64()));
    if let (Kind::Integer, (Some(min), Some(max))) = (meta.dtype.kind(), bounds) {
        return Stat::uniform(min, max).checked();
    }
    if let Some(data) = meta.data.as_ref().filter(|data| !data.is_empty()) {
        return Stat::of_elements(data.iter().map(|n| n.as_f64()));
    }
    if meta.dtype == DType::Bool {
        // Drawn as a normal value above one half.
        return Some(Stat::chance(1.0 - stat::normal_below(0.5)));
    }
    let mean = meta.mean.unwrap_or(0.0);
    let std = meta.std.unwrap_or(DEFAULT_STD) * spread;
    let min = bounds.0.unwrap_or(f64::NEG_INFINITY);
    let max = bounds.1.unwrap_or(f64::INFINITY);
    let clamped = Stat { min, max, ..Stat::normal(mean, std) }.map_rising(|x| x);
    clamped.checked().map(|stat| stat.stored_as(meta.dtype))
}

/// Keeps what fits the type: whole bounds for integers, nothing that is not a number.
fn settle(known: Known, value: &Value) -> Known {
    let fit = |stat: Stat, value: &Value| -> Option<Stat> {
        match value {
            Value::Tensor(tensor) => stat.stored_as(tensor.dtype).checked(),
            Value::Scalar(scalar) => scalar.as_f64().map(Stat::constant).or(stat.checked()),
            _ => stat.checked(),
        }
    };
    match (known, value) {
        (Known::One(stat), Value::Sequence(items)) => {
            Known::Each(items.iter().map(|item| fit(stat, item)).collect())
        }
        (Known::One(stat), value) => fit(stat, value).map_or(Known::Nothing, Known::One),
        (Known::Each(stats), Value::Sequence(items)) => {
            Known::Each(stats.into_iter().zip(items).map(|(stat, item)| fit(stat?, item)).collect())
        }
        (Known::Nothing, Value::Scalar(scalar)) if scalar.as_f64().is_some() => {
            known_scalar(scalar)
        }
        (known, _) => known,
    }
}

fn known_scalar(scalar: &Scalar) -> Known {
    scalar.as_f64().map_or(Known::Nothing, |value| Known::One(Stat::constant(value)))
}
