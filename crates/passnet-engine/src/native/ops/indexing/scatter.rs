//! Writing along one dimension: scatter and index_add.

use super::{checked_indices, offsets_along};
use crate::native::error::{Result, ensure};
use crate::native::tensor::element::{Element, with_element};
use crate::native::tensor::{Buffer, Scalar, Tensor};
use passnet_graph::DType;

/// How a value that arrives at an element joins what is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "what becomes of an element and what is scattered onto it")]
pub enum ScatterOp {
    Assign,
    Add,
    Multiply,
    Mean,
    Maximum,
    Minimum,
}

/// Joins two values in the arithmetic of their kind.
#[inline]
pub(super) fn combine<T: Element>(op: ScatterOp, old: T, new: T) -> T {
    if T::DTYPE.is_float() {
        let (a, b) = (old.to_f64(), new.to_f64());
        return match op {
            ScatterOp::Assign => new,
            // Float sums are rounded to float at each step, as torch does.
            ScatterOp::Add | ScatterOp::Mean if T::DTYPE == DType::Float64 => T::from_f64(a + b),
            ScatterOp::Add | ScatterOp::Mean => T::from_f32(old.to_f32() + new.to_f32()),
            ScatterOp::Multiply => T::from_f64(a * b),
            ScatterOp::Maximum => {
                if b > a || b.is_nan() {
                    new
                } else {
                    old
                }
            }
            ScatterOp::Minimum => {
                if b < a || b.is_nan() {
                    new
                } else {
                    old
                }
            }
        };
    }
    if T::DTYPE.is_complex() {
        return match op {
            ScatterOp::Add => {
                T::from_parts(old.to_f64() + new.to_f64(), old.imaginary() + new.imaginary())
            }
            _ => new,
        };
    }
    let (a, b) = (old.to_i64(), new.to_i64());
    match op {
        ScatterOp::Assign => new,
        ScatterOp::Add | ScatterOp::Mean => T::from_i64(a.wrapping_add(b)),
        ScatterOp::Multiply => T::from_i64(a.wrapping_mul(b)),
        ScatterOp::Maximum => T::from_i64(a.max(b)),
        ScatterOp::Minimum => T::from_i64(a.min(b)),
    }
}

/// Scatters one number into `target`.
pub fn scatter_value(
    target: &Tensor,
    dim: i64,
    index: &Tensor,
    value: Scalar,
    op: ScatterOp,
) -> Result<()> {
    let source = Tensor::full(&[], value, target.dtype())?.expand_to(index.shape())?;
    scatter(target, dim, index, &source, op, true)
}

/// Scatters `source` into `target`, in place; elements that nothing reaches stay as they are.
pub fn scatter(
    target: &Tensor,
    dim: i64,
    index: &Tensor,
    source: &Tensor,
    op: ScatterOp,
    include_self: bool,
) -> Result<()> {
    ensure!(
        source.dtype() == target.dtype(),
        DType,
        "scatter(): Expected self.dtype to be equal to src.dtype"
    );
    if index.numel() == 0 {
        return Ok(());
    }
    if target.ndim() == 0 {
        return scatter(
            &target.unsqueeze(0)?,
            0,
            &index.reshape(&[-1])?,
            &source.reshape(&[-1])?,
            op,
            include_self,
        );
    }
    let d = target.dim(dim)?;
    super::check_gather(target, d, index, "scatter")?;
    ensure!(
        source.ndim() == index.ndim()
            && index.shape().iter().zip(source.shape()).all(|(i, s)| i <= s),
        Shape,
        "Expected index {:?} to be no larger than src {:?}",
        index.shape(),
        source.shape()
    );
    let mut part = source.clone();
    for (axis, &size) in index.shape().iter().enumerate() {
        part = part.narrow(axis as i64, 0, size)?;
    }
    let part = part.dense_copy(target.dtype())?;
    let offsets = offsets_along(target, d, index, "scatter()")?;
    with_element!(target.dtype(), T => {
        let values = part.words::<T>()?;
        let mut out = target.write::<T>()?;
        apply(&mut out, &offsets, &values, op, include_self)
    })
}

fn apply<T: Element>(
    out: &mut [T],
    offsets: &[usize],
    values: &[T],
    op: ScatterOp,
    include_self: bool,
) -> Result<()> {
    let counted = op == ScatterOp::Mean || !include_self;
    let mut counts = Buffer::<i64>::zeroed(if counted { out.len() } else { 0 })?;
    for (&at, &value) in offsets.iter().zip(values) {
        let fresh = counted && counts[at] == 0 && !include_self;
        if counted {
            counts[at] += 1;
        }
        out[at] = if fresh { value } else { combine(op, out[at], value) };
    }
    if op == ScatterOp::Mean {
        for (o, &count) in out.iter_mut().zip(counts.iter()).filter(|(_, c)| **c > 0) {
            let total = count + i64::from(include_self);
            *o = if T::DTYPE.is_float() {
                T::from_f64(o.to_f64() / total as f64)
            } else {
                T::from_i64(o.to_i64().div_euclid(total))
            };
        }
    }
    Ok(())
}

/// `target.index_add_(dim, index, source, alpha)`.
pub fn index_add(
    target: &Tensor,
    dim: i64,
    index: &Tensor,
    source: &Tensor,
    alpha: Scalar,
) -> Result<()> {
    let d = target.dim(dim)?;
    ensure!(
        target.ndim() > 0 && source.ndim() == target.ndim(),
        Shape,
        "index_add_(): source and self must have the same number of dimensions"
    );
    ensure!(
        source.dtype() == target.dtype(),
        DType,
        "index_add_(): self ({}) and source ({}) must have the same scalar type",
        target.dtype(),
        source.dtype()
    );
    let rows = checked_indices(index, target.shape()[d], "index_add_()")?;
    ensure!(
        rows.len() == source.shape()[d],
        Index,
        "index_add_(): Number of indices ({}) should be equal to source.size(dim) ({})",
        rows.len(),
        source.shape()[d]
    );
    for (i, row) in rows.into_iter().enumerate() {
        let line = target.select(dim, row as i64)?;
        let added = source.select(dim, i as i64)?;
        crate::native::ops::pointwise::binary_in_place(
            crate::native::ops::pointwise::Binary::Add { alpha: alpha.to_f64() },
            &line,
            &added.into(),
        )?;
    }
    Ok(())
}
