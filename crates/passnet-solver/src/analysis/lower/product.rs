//! Narrow products: a few rows times a matrix, each element of the result a sum of its own. The matrix is read once for
//! every row, so that with more rows a library is better. And the product of two rows, in which nothing is added up.

use super::super::body::{Fold, Kind, VarId};
use super::super::{Refusal, refuse};
use super::{Lower, Wanted};
use crate::expression::{A, B};
use passnet_graph::Arg;
use passnet_graph::ops::{Bound, Op};

impl Lower<'_> {
    pub(super) fn product(&mut self, wanted: Wanted<'_, '_>) -> Result<VarId, Refusal> {
        let Wanted { node, bound, index } = wanted;
        if !is_plain(bound) || self.piece.kind(node)? != Kind::Float {
            return Err(self.unsupported(bound));
        }
        let weight = self.input_node(node, bound, "weight")?;
        let shape = self.piece.shape(weight)?;
        let Some(inner) = shape.get(1) else { refuse!("a product with something flat") };
        let loops = self.loops_for(index, std::slice::from_ref(inner))?;
        let Some(along) = loops.first() else { refuse!("no loop to add up along") };
        // The channels of a convolution of single pixels come second, those of a product last.
        let channel = if bound.op == Op::Linear { index.len().checked_sub(1) } else { Some(1) };
        let Some((channel, out)) = channel.and_then(|at| Some((at, index.get(at)?.clone()))) else {
            return Err(self.unsupported(bound));
        };
        let mut place = index.to_vec();
        place[channel] = along.clone();
        let mut row = vec![out.clone(), along.clone()];
        row.resize(shape.len(), self.zero());
        let x = self.input(node, bound, "input", &place)?;
        let weight = self.pull(weight, &row)?;
        let (x, weight) = (self.cast(x, Kind::Float), self.cast(weight, Kind::Float));
        let products = self.compute(Kind::Float, A * B, &[x, weight]);
        let total = self.fold(Fold::Sum, products)?;
        if bound.arg("bias").is_none() {
            return Ok(total);
        }
        let bias = self.input(node, bound, "bias", &[out])?;
        let bias = self.cast(bias, Kind::Float);
        Ok(self.compute(Kind::Float, A + B, &[total, bias]))
    }

    /// Every element of one row times every element of another.
    pub(super) fn outer(&mut self, wanted: Wanted<'_, '_>) -> Result<VarId, Refusal> {
        let Wanted { node, bound, index } = wanted;
        let [row, column] = index else { return Err(self.unsupported(bound)) };
        let kind = self.piece.kind(node)?;
        if kind == Kind::Bool {
            return Err(self.unsupported(bound));
        }
        let a = self.input(node, bound, "input", std::slice::from_ref(row))?;
        let b = self.input(node, bound, "vec2", std::slice::from_ref(column))?;
        let (a, b) = (self.cast(a, kind), self.cast(b, kind));
        Ok(self.compute(kind, A * B, &[a, b]))
    }
}

/// Whether every element of the result is one row of the matrix times one of the input.
fn is_plain(bound: &Bound<'_>) -> bool {
    let all = |name: &str, value: i64| match bound.arg(name) {
        Arg::None => true,
        arg => match arg.as_sequence() {
            Some(items) => items.iter().all(|item| item.as_int() == Some(value)),
            None => arg.as_int() == Some(value),
        },
    };
    match bound.op {
        Op::Linear => true,
        Op::Conv2d => all("stride", 1) && all("padding", 0) && all("groups", 1),
        _ => false,
    }
}
