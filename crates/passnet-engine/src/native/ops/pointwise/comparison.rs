//! Comparisons, element by element.

use super::blocks::{self, Block};
use super::unary::pick;
use crate::native::error::{Result, ensure};
use crate::native::tensor::element::Real;
use crate::native::tensor::{Arg, Complex, Tensor, promote};
use passnet_cpu::multiversion;
use passnet_graph::DType;

/// Comparisons, which give truths.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "torch's names")]
pub enum Comparison {
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
}

/// Element by element, a bool tensor.
pub fn compare(op: Comparison, a: &Arg, b: &Arg) -> Result<Tensor> {
    let common = promote::result_type([a, b]);
    let cast = |arg: &Arg| -> Result<Tensor> {
        let tensor = arg.to_tensor()?;
        if tensor.ndim() == 0 { tensor.to_dtype(common) } else { Ok(tensor) }
    };
    let (a, b) = (cast(a)?, cast(b)?);
    match common {
        DType::Float64 => {
            blocks::map::<f64>(&[&a, &b], DType::Bool, &|i, o| compare_block(op, i, o))
        }
        d if d.is_float() => {
            blocks::map::<f32>(&[&a, &b], DType::Bool, &|i, o| compare_block(op, i, o))
        }
        d if d.is_complex() => {
            ensure!(
                matches!(op, Comparison::Eq | Comparison::Ne),
                DType,
                "complex tensors have no order"
            );
            blocks::map::<Complex<f64>>(&[&a, &b], DType::Bool, &|i, o| {
                for (at, o) in o.iter_mut().enumerate() {
                    let equal = pick(&i[0], at) == pick(&i[1], at);
                    o.re = f64::from(u8::from(equal == (op == Comparison::Eq)));
                }
            })
        }
        _ => blocks::map::<i64>(&[&a, &b], DType::Bool, &|i, o| {
            for (at, o) in o.iter_mut().enumerate() {
                *o = i64::from(holds(op, &pick(&i[0], at), &pick(&i[1], at)));
            }
        }),
    }
}

#[inline(always)]
fn holds<T: PartialOrd>(op: Comparison, a: &T, b: &T) -> bool {
    match op {
        Comparison::Eq => a == b,
        Comparison::Ne => a != b,
        Comparison::Lt => a < b,
        Comparison::Le => a <= b,
        Comparison::Gt => a > b,
        Comparison::Ge => a >= b,
    }
}

fn compare_block<T: Real>(op: Comparison, inputs: &[Block<'_, T>], out: &mut [T]) {
    match (inputs[0], inputs[1]) {
        (Block::Run(a), Block::Run(b)) => compare_runs(op, a, b, out),
        (Block::Run(a), Block::One(b)) => compare_run_one(op, a, b, out),
        _ => {
            for (at, o) in out.iter_mut().enumerate() {
                let truth = holds(op, &pick(&inputs[0], at), &pick(&inputs[1], at));
                *o = if truth { T::ONE } else { T::ZERO };
            }
        }
    }
}

multiversion! {
    fn compare_runs[T: Real](op: Comparison, a: &[T], b: &[T], out: &mut [T]) {
        for ((o, a), b) in out.iter_mut().zip(a).zip(b) {
            *o = if holds(op, a, b) { T::ONE } else { T::ZERO };
        }
    }
}

multiversion! {
    fn compare_run_one[T: Real](op: Comparison, a: &[T], b: T, out: &mut [T]) {
        for (o, a) in out.iter_mut().zip(a) {
            *o = if holds(op, a, &b) { T::ONE } else { T::ZERO };
        }
    }
}
