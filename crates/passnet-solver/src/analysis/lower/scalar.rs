//! Tensors made of nothing but numbers and places.

use super::super::Refusal;
use super::super::body::{Kind, VarId};
use super::super::index::Index;
use super::pointwise::number;
use super::{Lower, Wanted};
use passnet_graph::ops::{Bound, Op};

impl Lower<'_> {
    pub(super) fn creation(&mut self, wanted: Wanted<'_, '_>) -> Result<VarId, Refusal> {
        let Wanted { node, bound, index } = wanted;
        let kind = self.piece.kind(node)?;
        let fill = match bound.op {
            Op::Zeros | Op::ZerosLike | Op::NewZeros => Some(0.0),
            Op::Ones | Op::OnesLike | Op::NewOnes => Some(1.0),
            Op::Full | Op::FullLike | Op::NewFull => bound.float("fill_value"),
            Op::Tensor | Op::ScalarTensor if index.is_empty() => {
                bound.float("data").or_else(|| bound.float("s"))
            }
            _ => None,
        };
        match (fill, bound.op) {
            (Some(value), _) => Ok(self.text(kind, literal(value, kind), &[])),
            (None, Op::Arange) => self.arange(bound, index, kind),
            _ => Err(self.unsupported(bound)),
        }
    }

    fn arange(&mut self, bound: &Bound<'_>, index: &[Index], kind: Kind) -> Result<VarId, Refusal> {
        let start = if bound.has("start") { bound.int("start") } else { Some(0) };
        let step = if bound.has("step") { bound.int("step") } else { Some(1) };
        let ([index], Some(start), Some(step)) = (index, start, step) else {
            return Err(self.unsupported(bound));
        };
        let place = index.times(&self.fixed(step))?.offset(&self.fixed(start))?;
        let place = self.place(&place);
        Ok(self.cast(place, kind))
    }
}

fn literal(value: f64, kind: Kind) -> String {
    match kind {
        Kind::Float => number(value),
        Kind::Int => (value as i64).to_string(),
        Kind::Bool => if value == 0.0 { "False" } else { "True" }.into(),
    }
}
