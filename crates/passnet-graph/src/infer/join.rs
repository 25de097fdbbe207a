//! One tensor from several: concatenation, grids, complex numbers.

use super::args::Args;
use super::dim::Dim;
use super::pointwise::elementwise;
use super::problem::{Inferred, Problem};
use super::promote::{Operand, message_name, result_type};
use super::strides;
use super::value::{Shape, TensorType, Value};
use crate::dtype::DType;
use crate::ops::Op;
use crate::view::region::unsqueezed;
use smallvec::SmallVec;

pub(super) fn join(args: &Args) -> Inferred<Value> {
    let tensors = args.tensors("tensors")?;
    if tensors.is_empty() {
        return Err(Problem::invalid("expected a non-empty list of Tensors"));
    }
    let rank = tensors[0].rank();
    match args.op() {
        Op::Cat => cat(args, &tensors, args.int("dim")?.size).map(Value::Tensor),
        Op::Stack => {
            let axis = super::args::wrap_axis(args.int("dim")?.size, rank + 1)?;
            for (entry, tensor) in tensors.iter().enumerate() {
                if tensor.sizes() != tensors[0].sizes() {
                    return Err(Problem::invalid(format!(
                        "stack expects each tensor to be equal size, but got {} at entry 0 and {} at entry {entry}",
                        strides::describe(&tensors[0].shape),
                        strides::describe(&tensor.shape)
                    )));
                }
            }
            let rows: Vec<TensorType> = tensors.iter().map(|t| unsqueezed(*t, axis)).collect();
            let shape = cat(args, &rows.iter().collect::<Vec<_>>(), axis as i64)?;
            Ok(TensorType::contiguous(shape.dtype, shape.shape).into())
        }
        Op::Hstack => {
            let rows: Vec<TensorType> = tensors.iter().map(|t| at_least(t, 1)).collect();
            let axis = i64::from(rows[0].rank() > 1);
            cat(args, &rows.iter().collect::<Vec<_>>(), axis).map(Value::Tensor)
        }
        _ => {
            let rows: Vec<TensorType> = tensors.iter().map(|t| at_least(t, 2)).collect();
            cat(args, &rows.iter().collect::<Vec<_>>(), 0).map(Value::Tensor)
        }
    }
}

fn at_least(tensor: &TensorType, rank: usize) -> TensorType {
    let mut tensor = tensor.clone();
    while tensor.rank() < rank {
        tensor = unsqueezed(&tensor, 0);
    }
    tensor
}

fn cat(args: &Args, tensors: &[&TensorType], axis: i64) -> Inferred<TensorType> {
    // A tensor of shape [0] fits everywhere: torch has always skipped it.
    let is_skipped = |tensor: &TensorType| tensor.rank() == 1 && tensor.shape[0].size == 0;
    let operands: Vec<Operand> = tensors.iter().map(|tensor| Operand::Tensor(tensor)).collect();
    let dtype = result_type(&operands);
    if let Some(place) = tensors.iter().position(|tensor| tensor.rank() == 0) {
        return Err(Problem::invalid(format!(
            "zero-dimensional tensor (at position {place}) cannot be concatenated"
        )));
    }
    let Some(first) = tensors.iter().find(|tensor| !is_skipped(tensor)) else {
        return Ok(TensorType::contiguous(dtype, strides::shape([Dim::fixed(0)])));
    };
    let axis = super::args::wrap_axis(axis, first.rank())?;
    let mut shape = first.shape.clone();
    let mut total = Dim::fixed(0);
    let mut channels_last = true;
    for (number, tensor) in tensors.iter().enumerate().filter(|(_, tensor)| !is_skipped(tensor)) {
        if tensor.rank() != shape.len() {
            return Err(Problem::invalid(format!(
                "Tensors must have same number of dimensions: got {} and {}",
                shape.len(),
                tensor.rank()
            )));
        }
        for (other, dim) in tensor.shape.iter().enumerate() {
            if other != axis && !args.scope.same(&shape[other], dim) {
                return Err(Problem::invalid(format!(
                    "Sizes of tensors must match except in dimension {axis}. Expected size {} but got size {} for tensor number {number} in the list.",
                    shape[other].size, dim.size
                )));
            }
            if other != axis && dim.is_symbolic() && !shape[other].is_symbolic() {
                shape[other] = dim.clone();
            }
        }
        total = total.add(&tensor.shape[axis])?;
        channels_last &= strides::suggests_channels_last(&tensor.shape, &tensor.strides);
    }
    shape[axis] = total;
    let steps =
        if channels_last { strides::channels_last(&shape) } else { strides::contiguous(&shape) };
    Ok(TensorType::strided(dtype, shape, steps))
}

/// `diff`: neighbours along a dimension, subtracted `n` times, after what is put before and behind.
pub(super) fn diff(args: &Args) -> Inferred<Value> {
    let input = args.first_tensor()?;
    if input.rank() == 0 {
        return Err(Problem::invalid("diff expects input to be at least one-dimensional"));
    }
    let axis = args.axis("dim", input.rank())?;
    let times = args.int("n")?.size;
    if times < 0 {
        return Err(Problem::invalid(format!("order must be non-negative but got {times}")));
    }
    if times == 0 {
        return Ok(strides::like_tensor(input, input.dtype).into());
    }
    let (before, behind) = (args.optional_tensor("prepend")?, args.optional_tensor("append")?);
    let parts: Vec<&TensorType> = before.into_iter().chain([input]).chain(behind).collect();
    let joined = if parts.len() == 1 { input.clone() } else { cat(args, &parts, axis as i64)? };
    let mut shape = joined.shape.clone();
    let Some(length) = shape.get_mut(axis) else { return Err(Problem::invalid("no dimension")) };
    *length = length.sub(&Dim::fixed(times.min(length.size)))?;
    let steps = strides::elementwise(&shape, &[(&shape, &joined.strides)]);
    Ok(TensorType::strided(joined.dtype, shape, steps).into())
}

/// `meshgrid`, `cartesian_prod`.
pub(super) fn grid(args: &Args) -> Inferred<Value> {
    let tensors = args.tensors("tensors")?;
    let Some(first) = tensors.first() else {
        return Err(Problem::invalid("meshgrid expects a non-empty TensorList"));
    };
    if tensors.iter().any(|tensor| tensor.dtype != first.dtype) {
        return Err(Problem::invalid("meshgrid expects all tensors to have the same dtype"));
    }
    let mut sizes = Shape::new();
    for tensor in &tensors {
        match tensor.shape.as_slice() {
            [] => sizes.push(Dim::fixed(1)),
            [dim] => sizes.push(dim.clone()),
            _ => {
                return Err(Problem::invalid(
                    "meshgrid: Expected 0D or 1D tensor in the tensor list",
                ));
            }
        }
    }
    if args.op() == Op::CartesianProd {
        if tensors.len() == 1 {
            return Ok((*first).clone().into());
        }
        let rows = strides::product(&sizes)?;
        let shape = strides::shape([rows, Dim::fixed(tensors.len() as i64)]);
        return Ok(TensorType::contiguous(first.dtype, shape).into());
    }
    let indexing = args.text("indexing")?;
    if !matches!(indexing.as_deref(), None | Some("ij" | "xy")) {
        return Err(Problem::invalid("torch.meshgrid: indexing must be one of \"xy\" or \"ij\""));
    }
    let swapped = indexing.as_deref() == Some("xy") && tensors.len() >= 2;
    let place = |index: usize| match (swapped, index) {
        (true, 0) => 1,
        (true, 1) => 0,
        _ => index,
    };
    let mut shape = sizes.clone();
    if swapped {
        shape.swap(0, 1);
    }
    let grids = tensors.iter().enumerate().map(|(index, tensor)| {
        let mut steps = SmallVec::from_elem(0, shape.len());
        steps[place(index)] = tensor.strides.first().copied().unwrap_or(1);
        Value::Tensor(tensor.viewed(shape.clone(), steps))
    });
    Ok(Value::Sequence(grids.collect()))
}

pub(super) fn complex(args: &Args) -> Inferred<Value> {
    let names = if args.op() == Op::Complex { ["real", "imag"] } else { ["abs", "angle"] };
    let (left, right) = (args.tensor(names[0])?, args.tensor(names[1])?);
    if left.dtype != right.dtype {
        return Err(Problem::invalid(format!(
            "Expected object of scalar type {} but got scalar type {} for second argument",
            message_name(left.dtype),
            message_name(right.dtype)
        )));
    }
    if !matches!(left.dtype, DType::Float32 | DType::Float64 | DType::Float16) {
        return Err(Problem::invalid("Expected both inputs to be Half, Float or Double tensors"));
    }
    Ok(elementwise(args, left.dtype.complex(), &[left, right])?.into())
}
