//! Running sums.

use super::super::body::{Code, Fold, Kind, LONGEST_ROW, VarId};
use super::super::{Refusal, refuse};
use super::{Lower, Wanted};
use crate::expression::{A, B, Binary, Expr, Formula, Type};
use passnet_graph::ops::Op;

impl Lower<'_> {
    /// Running sums along a dimension.
    pub(super) fn scan(&mut self, wanted: Wanted<'_, '_>) -> Result<VarId, Refusal> {
        let Wanted { node, bound, index } = wanted;
        if bound.op != Op::Cumsum || bound.mutated().is_some() {
            return Err(self.unsupported(bound));
        }
        let source = self.input_node(node, bound, "input")?;
        let from = self.piece.shape(source)?;
        let dim = self.dim(bound.arg("dim"), from.len())?;
        let is_half =
            self.piece.dtypes(node).iter().any(|dtype| dtype.is_float() && dtype.size() < 4);
        if is_half && from[dim].largest() > 2 {
            // Added up in another order, a sum rounds to a neighbour now and then, and differences of sums show it.
            refuse!("running sums in half precision");
        }
        if from[dim].constant() == Some(1) {
            let only = self.pull(source, index)?;
            return Ok(self.cast(only, self.piece.kind(node)?));
        }
        let is_last = index[dim].terms.is_empty() && index[dim].constant.is_last_below(&from[dim]);
        if is_last && from[dim].largest() > 1 {
            // The last of running sums is the sum: no other place of the row is asked for.
            let mut index = index.to_vec();
            index[dim] = self.zero();
            let place = self.place_in_source(&index, &from, &[dim], true)?;
            let x = self.pull(source, &place)?;
            let x = match self.piece.kind(node)? {
                Kind::Int => self.cast(x, Kind::Int),
                _ => self.cast(x, Kind::Float),
            };
            return self.fold(Fold::Sum, x);
        }
        let x = self.pull(source, index)?;
        if let Some(step) = self.constant(x)
            && is_exact_multiple(step, from[dim].largest())
        {
            let count = index[dim].offset(&self.fixed(1))?;
            let count = self.place(&count);
            let kind = self.piece.kind(node)?;
            let count = self.cast(count, kind);
            let step = self.cast(x, kind);
            return Ok(self.compute(kind, A * B, &[count, step]));
        }
        if from[dim].largest() > LONGEST_ROW {
            refuse!("running sums of a row too long for one block");
        }
        self.fold_dims(index, &from, &[dim])?;
        let x = match self.piece.kind(node)? {
            Kind::Int => self.wide(x),
            _ => self.cast(x, Kind::Float),
        };
        let reduced = self.reduced.clone().unwrap_or_default();
        if self.body.vars[x].axes.is_disjoint(&reduced) {
            refuse!("running sums of values that are all the same");
        }
        let axes = self.body.vars[x].axes.clone();
        Ok(self.add(None, self.kind(x), Code::Scan { value: x }, axes))
    }

    /// The number that a value is everywhere, where the formula says it.
    fn constant(&self, var: VarId) -> Option<f32> {
        let Code::Compute { formula, operands } = &self.body.vars[var].code else { return None };
        let value = |formula: &Formula| match formula {
            Expr::Value(number) => self.constant(operands[*number]),
            Expr::Literal(literal) => literal.as_f64().map(|value| value as f32),
            _ => None,
        };
        match formula {
            Expr::Cast(Type::Float32 | Type::Int64, of) => value(of),
            Expr::Binary(Binary::Over, x, y) => Some(value(x)? / value(y)?),
            Expr::Binary(Binary::Times, x, y) => Some(value(x)? * value(y)?),
            other => value(other),
        }
    }
}

/// Whether adding a number up step by step gives its multiples as they are, in float32.
fn is_exact_multiple(step: f32, count: i64) -> bool {
    let mut total = 0.0f32;
    (1..=count).all(|times| {
        total += step;
        total == step * times as f32
    })
}
