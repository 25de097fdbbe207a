//! What a rule may ask about its call.

use super::super::{Stat, Stats};
use crate::graph::{Arg, NodeId};
use crate::infer::{Inference, TensorType, Value};
use crate::ops::Bound;

pub(super) struct Rule<'a, 'b> {
    pub(super) stats: &'a Stats,
    pub(super) types: &'a Inference,
    pub(super) id: NodeId,
    pub(super) bound: &'a Bound<'b>,
}

impl Rule<'_, '_> {
    pub(super) fn of_arg(&self, arg: &Arg) -> Option<Stat> {
        match arg {
            Arg::Node(id) => self.stats.of(*id),
            other => other.as_float().and_then(|value| Stat::constant(value).checked()),
        }
    }

    pub(super) fn stat(&self, name: &str) -> Option<Stat> {
        self.of_arg(self.bound.arg(name))
    }

    /// The first argument, whatever its name.
    pub(super) fn first(&self) -> Option<Stat> {
        let mut first = None;
        for param in &self.bound.signature.params {
            let arg = self.bound.arg(param.name);
            arg.for_each_node(&mut |id| first = first.or(self.stats.of(id)));
            if first.is_some() {
                break;
            }
        }
        first
    }

    pub(super) fn number(&self, name: &str) -> Option<f64> {
        match self.bound.arg(name) {
            Arg::Node(id) => match self.types.value(*id) {
                Value::Scalar(scalar) => scalar.as_f64(),
                _ => None,
            },
            other => other.as_float(),
        }
    }

    pub(super) fn tensor(&self, name: &str) -> Option<&TensorType> {
        self.types.value(self.bound.arg(name).as_node()?).as_tensor()
    }

    pub(super) fn input(&self) -> Option<&TensorType> {
        self.bound.signature.params.first().and_then(|param| self.tensor(param.name))
    }

    pub(super) fn output(&self) -> Option<&TensorType> {
        match self.types.value(self.id) {
            Value::Tensor(tensor) => Some(tensor),
            Value::Sequence(items) => items.iter().find_map(Value::as_tensor),
            _ => None,
        }
    }

    /// Elements read for each element of the result.
    pub(super) fn folded(&self) -> Option<f64> {
        Some(self.input()?.elements() as f64 / self.output()?.elements().max(1) as f64)
    }

    /// The size of the dimension an operation works along.
    pub(super) fn along(&self) -> Option<f64> {
        let input = self.input()?;
        let rank = input.rank() as i64;
        let dim = self.number("dim").unwrap_or(-1.0) as i64;
        let at = usize::try_from(if dim < 0 { dim + rank } else { dim }).ok()?;
        Some(input.shape.get(at).map_or(1, |dim| dim.size) as f64)
    }
}

/// How often a value is not zero.
pub(super) fn nonzero(x: Stat) -> f64 {
    if is_bit(x) { x.mean } else { f64::from(u8::from(x.std != 0.0 || x.mean != 0.0)) }
}

pub(super) fn is_bit(x: Stat) -> bool {
    x.min >= 0.0 && x.max <= 1.0
}

pub(super) fn sigmoid(v: f64) -> f64 {
    1.0 / (1.0 + (-v).exp())
}
