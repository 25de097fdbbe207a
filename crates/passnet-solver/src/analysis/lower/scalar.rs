//! Tensors made of nothing but numbers and places.

use super::super::body::{Kind, VarId};
use super::super::index::Index;
use super::super::{Refusal, refuse};
use super::{Lower, Wanted};
use crate::expression::{A, B, Expr, Literal};
use passnet_cpu::halves::{round_to_bf16, round_to_f16};
use passnet_graph::ops::{Bound, Op};
use passnet_graph::{Arg, DType};

impl Lower<'_> {
    pub(super) fn creation(&mut self, wanted: Wanted<'_, '_>) -> Result<VarId, Refusal> {
        let Wanted { node, bound, index } = wanted;
        let kind = self.piece.kind(node)?;
        if kind == Kind::Int
            && matches!(bound.op, Op::Full | Op::FullLike | Op::NewFull)
            && let Some(value) = bound.int("fill_value")
        {
            // As it is written: a float would round beyond 53 bits.
            return Ok(self.number(kind, Literal::Int(value)));
        }
        let fill = match bound.op {
            Op::Zeros | Op::ZerosLike | Op::NewZeros => Some(0.0),
            Op::Ones | Op::OnesLike | Op::NewOnes => Some(1.0),
            Op::Full | Op::FullLike | Op::NewFull => bound.float("fill_value"),
            Op::Tensor | Op::ScalarTensor if index.is_empty() => {
                bound.float("data").or_else(|| bound.float("s"))
            }
            _ => None,
        };
        let is_half = |dtype: &DType| dtype.is_float() && dtype.size() < 4;
        let dtypes = self.piece.dtypes(node);
        let fill = match dtypes.iter().any(is_half) {
            false => fill,
            true => {
                let Some(rounded) = fill.and_then(|value| in_half(value, &dtypes)) else {
                    refuse!("`{}` rounds its numbers to half precision", bound.op.name())
                };
                Some(rounded)
            }
        };
        match (fill, bound.op) {
            (Some(value), _) => Ok(self.number(kind, literal(value, kind))),
            (None, Op::Arange) => self.arange(bound, index, kind),
            (None, Op::Linspace) => self.linspace(bound, index, kind),
            (None, Op::Eye) => self.eye(bound, index, kind),
            (None, Op::Tensor | Op::AsTensor | Op::NewTensor) => self.list(wanted, kind),
            _ => Err(self.unsupported(bound)),
        }
    }

    fn arange(&mut self, bound: &Bound<'_>, index: &[Index], kind: Kind) -> Result<VarId, Refusal> {
        // A whole number may be written as a float: `arange(0, 768, 2.0, dtype=torch.int64)`.
        let whole = |number: f64| (number.fract() == 0.0).then_some(number as i64);
        let given = |name: &str| bound.int(name).or_else(|| whole(bound.float(name)?));
        let start = if bound.has("start") { given("start") } else { Some(0) };
        let step = if bound.has("step") { given("step") } else { Some(1) };
        let ([index], Some(start), Some(step)) = (index, start, step) else {
            return Err(self.unsupported(bound));
        };
        let place = index.times(&self.fixed(step))?.offset(&self.fixed(start))?;
        let place = self.place(&place);
        Ok(self.cast(place, kind))
    }

    /// Steps from either end, as torch makes them, so that both ends are exact.
    fn linspace(
        &mut self,
        bound: &Bound<'_>,
        index: &[Index],
        kind: Kind,
    ) -> Result<VarId, Refusal> {
        let ends = (bound.float("start"), bound.float("end"), bound.int("steps"));
        let ([index], (Some(start), Some(end), Some(steps)), Kind::Float) = (index, ends, kind)
        else {
            return Err(self.unsupported(bound));
        };
        if steps < 2 {
            return Err(self.unsupported(bound));
        }
        let step = (end as f32 - start as f32) / (steps - 1) as f32;
        let (start, end) = (Expr::float(start), Expr::float(end));
        let step = || Expr::float(f64::from(step));
        let place = self.place(index);
        let float = self.cast(place, Kind::Float);
        let is_first_half = A.below(Expr::int(steps / 2));
        let back = end - step() * (Expr::int(steps - 1) - B);
        let formula = Expr::select(is_first_half, start + step() * B, back);
        Ok(self.compute(kind, formula, &[place, float]))
    }

    fn eye(&mut self, bound: &Bound<'_>, index: &[Index], kind: Kind) -> Result<VarId, Refusal> {
        let [row, column] = index else { return Err(self.unsupported(bound)) };
        let (row, column) = (self.place(row), self.place(column));
        let is_diagonal = self.compute(Kind::Bool, A.equals(B), &[row, column]);
        Ok(self.cast(is_diagonal, kind))
    }

    /// A few numbers written in the graph: each is chosen by its place.
    fn list(&mut self, wanted: Wanted<'_, '_>, kind: Kind) -> Result<VarId, Refusal> {
        let Wanted { node, bound, index } = wanted;
        let mut numbers = Vec::new();
        flatten(bound.arg("data"), &mut numbers);
        let shape = self.piece.shape(node)?;
        let count = self.elements(&shape)?;
        let is_known = numbers.iter().all(Option::is_some) && count.is(numbers.len() as i64);
        if !is_known || numbers.is_empty() || numbers.len() > MOST_LISTED {
            return Err(self.unsupported(bound));
        }
        let place = self.linear(index, &shape)?;
        let known = place.constant.constant().filter(|_| place.terms.is_empty());
        let place = self.place(&place);
        let numbers: Vec<f64> = numbers.into_iter().flatten().collect();
        let only = known.and_then(|at| numbers.get(usize::try_from(at).ok()?));
        if let Some(number) = only {
            return Ok(self.number(kind, literal(*number, kind)));
        }
        let mut numbers = numbers.into_iter().rev();
        let last = numbers.next().unwrap_or_default();
        let mut value = self.number(kind, literal(last, kind));
        let earlier: Vec<f64> = numbers.collect();
        for (after, number) in earlier.iter().enumerate() {
            let at = Expr::int((earlier.len() - 1 - after) as i64);
            let chosen = Expr::select(A.equals(at), Expr::Literal(literal(*number, kind)), B);
            value = self.compute(kind, chosen, &[place, value]);
        }
        Ok(value)
    }
}

/// A longer list of numbers is a table, which belongs in memory.
const MOST_LISTED: usize = 16;

/// The numbers of a list of lists, `None` for what is no number.
fn flatten(data: &Arg, numbers: &mut Vec<Option<f64>>) {
    match data.as_sequence() {
        Some(items) => items.iter().for_each(|item| flatten(item, numbers)),
        None => numbers.push(data.as_float().or_else(|| data.as_bool().map(f64::from))),
    }
}

/// A number as the half type holds it that all graphs have; where they have both, a number that both hold as it is.
fn in_half(value: f64, dtypes: &[DType]) -> Option<f64> {
    let rounded = |dtype: &DType| match dtype {
        DType::Float16 => f64::from(round_to_f16(value as f32)),
        DType::BFloat16 => f64::from(round_to_bf16(value as f32)),
        _ => value,
    };
    let first = rounded(dtypes.first()?);
    dtypes.iter().all(|dtype| rounded(dtype).to_bits() == first.to_bits()).then_some(first)
}

fn literal(value: f64, kind: Kind) -> Literal {
    match kind {
        Kind::Float => Literal::Float(value),
        Kind::Int => Literal::Int(value as i64),
        Kind::Bool => Literal::Bool(value != 0.0),
    }
}
