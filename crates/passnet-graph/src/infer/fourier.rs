//! Fourier transforms.

use super::args::{Args, wrap_axis};
use super::dim::Dim;
use super::problem::{Inferred, Problem};
use super::value::{Shape, TensorType, Value};
use crate::dtype::{DType, Kind};
use crate::ops::Op;
use smallvec::SmallVec;

/// One transform along one or more dimensions.
pub(super) fn transform(args: &Args) -> Inferred<Value> {
    let input = args.first_tensor()?;
    let op = args.op();
    let real_input = matches!(op, Op::Rfft | Op::Rfft2);
    let real_output = matches!(op, Op::Irfft | Op::Irfft2);
    if real_input && input.dtype.is_complex() {
        return Err(Problem::invalid(format!(
            "rfft expects a real input tensor, but got {}",
            super::promote::message_name(input.dtype)
        )));
    }
    let axes = axes(args, input.rank())?;
    let sizes = args.optional_ints(if args.bound.has("n") { "n" } else { "s" })?;
    let mut shape = input.shape.clone();
    for (place, axis) in axes.iter().enumerate() {
        if let Some(size) = sizes.as_ref().and_then(|sizes| sizes.get(place))
            && size.size != -1
        {
            shape[*axis] = size.clone();
        }
    }
    if let Some(last) = axes.last() {
        let given = sizes.as_ref().and_then(|sizes| sizes.get(axes.len() - 1));
        if real_input {
            shape[*last] = shape[*last].divided(2)?.offset(1)?;
        } else if real_output && given.is_none_or(|size| size.size == -1) {
            shape[*last] = shape[*last].offset(-1)?.scaled(2)?;
        }
    }
    if axes.iter().any(|axis| shape[*axis].size < 1) {
        return Err(Problem::invalid("Invalid number of data points specified"));
    }
    let complex = match input.dtype.kind() {
        Kind::Complex => input.dtype,
        _ if input.dtype == DType::Float64 => DType::Complex128,
        _ => DType::Complex64,
    };
    let dtype = if real_output { complex.real() } else { complex };
    Ok(laid_out(dtype, shape, &axes).into())
}

fn axes(args: &Args, rank: usize) -> Inferred<crate::view::List<usize>> {
    let mut axes: crate::view::List<usize> = SmallVec::new();
    match args.optional_ints("dim")? {
        Some(dims) => {
            for dim in &dims {
                axes.push(wrap_axis(dim.size, rank)?);
            }
        }
        None => match args.optional_ints("s")? {
            Some(sizes) => axes.extend(rank.saturating_sub(sizes.len())..rank),
            None => axes.extend(0..rank),
        },
    }
    if rank == 0 || axes.iter().any(|axis| *axis >= rank) {
        return Err(Problem::invalid("a Fourier transform needs at least one dimension"));
    }
    Ok(axes)
}

/// The transformed dimensions are innermost in memory: torch moves them last, transforms, and views back.
fn laid_out(dtype: DType, shape: Shape, axes: &[usize]) -> TensorType {
    let mut order: SmallVec<[usize; 6]> =
        (0..shape.len()).filter(|axis| !axes.contains(axis)).collect();
    let mut transformed: SmallVec<[usize; 6]> = axes.iter().copied().collect();
    transformed.sort_unstable();
    order.extend(transformed);
    let permuted: crate::view::List<Dim> = order.iter().map(|axis| shape[*axis].clone()).collect();
    let dense = super::strides::contiguous(&permuted);
    let mut strides = dense.clone();
    for (place, axis) in order.iter().enumerate() {
        strides[*axis] = dense[place];
    }
    TensorType::strided(dtype, shape, strides)
}
