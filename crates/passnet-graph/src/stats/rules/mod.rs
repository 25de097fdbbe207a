//! One rule per family of operations. A rule that knows nothing says so; a node without statistics stays without.

mod creation;
mod fold;
mod pointwise;
mod rule;

use super::{Known, Stat, Stats};
use crate::graph::{Call, NodeId};
use crate::infer::{Inference, Value};
use crate::ops::{Class, Op};
use rule::Rule;

pub(super) fn apply(stats: &Stats, types: &Inference, id: NodeId, call: &Call) -> Known {
    let Ok(bound) = call.bind() else { return Known::Nothing };
    let rule = Rule { stats, types, id, bound: &bound };
    rule.several().or_else(|| rule.one().map(Known::One)).unwrap_or(Known::Nothing)
}

impl Rule<'_, '_> {
    /// Operations that return several tensors of different meaning.
    fn several(&self) -> Option<Known> {
        let Value::Sequence(items) = self.types.value(self.id) else { return None };
        let places = |size: f64| Some(Stat::uniform(0.0, (size - 1.0).max(0.0)));
        let x = self.first();
        let pair = match self.bound.op {
            Op::Max | Op::Cummax => {
                [x.map(|x| x.largest(self.along().unwrap_or(1.0))), places(self.along()?)]
            }
            Op::Min | Op::Cummin => [
                x.map(|x| x.negate().largest(self.along().unwrap_or(1.0)).negate()),
                places(self.along()?),
            ],
            Op::Topk => {
                let share = self.along()? / self.number("k").unwrap_or(1.0).max(1.0);
                [x.map(|x| x.largest(share)), places(self.along()?)]
            }
            Op::Lstm | Op::Gru | Op::RnnTanh | Op::LstmCell => {
                let state = self.recurrent();
                // What an LSTM remembers beside its output is not bounded by its gates.
                let memory = Stat::normal(0.0, 2.0 * state?.std);
                return Some(Known::Each(match items.len() {
                    2 if self.bound.op == Op::LstmCell => vec![state, Some(memory)],
                    2 => vec![state, state],
                    _ => vec![state, state, Some(memory)],
                }));
            }
            Op::Sort | Op::Median => [x, places(self.along()?)],
            Op::VarMean | Op::StdMean => {
                let x = x?;
                let spread = if self.bound.op == Op::VarMean { x.variance() } else { x.std };
                let count = self.folded().unwrap_or(1.0);
                let first = Stat { min: 0.0, ..Stat::normal(spread, spread / count.sqrt()) };
                [Some(first), Some(x.average(count))]
            }
            Op::AdaptiveMaxPool1d
            | Op::AdaptiveMaxPool2d
            | Op::AdaptiveMaxPool3d
            | Op::MaxPool1d
            | Op::MaxPool2d
            | Op::MaxPool3d => {
                let field =
                    self.input()?.shape.iter().skip(2).fold(1.0, |n, dim| n * dim.size as f64);
                [x.map(|x| x.largest(self.folded().unwrap_or(1.0))), places(field)]
            }
            _ => return x.map(|x| Known::Each(vec![Some(x); items.len()])),
        };
        Some(Known::Each(pair.to_vec()))
    }

    fn one(&self) -> Option<Stat> {
        match self.bound.class() {
            Class::Pointwise => self.pointwise(),
            Class::Reduction | Class::Scan => self.reduction(),
            Class::Contraction => self.contraction(),
            Class::Normalisation => self.normalisation(),
            Class::Attention => self.attention(),
            Class::Pooling => self.pooling(),
            Class::Creation | Class::Random => self.creation(),
            Class::Movement => self.movement(),
            Class::Indexing => self.indexing(),
            Class::View | Class::Resampling => self.first(),
            Class::Transform => self.transform(),
            Class::Scalar => match self.types.value(self.id) {
                Value::Scalar(scalar) => scalar.as_f64().map(Stat::constant),
                _ => None,
            },
            Class::Effect => None,
        }
    }
}
