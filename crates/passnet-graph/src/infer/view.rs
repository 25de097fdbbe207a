//! New metadata over the same memory, and the operations that are views where they can be.

use super::args::{Args, wrap_axis};
use super::dim::Dim;
use super::value::{Shape, TensorType, Value};
use super::{Outcome, Problem, strides};
use crate::ops::Op;
use smallvec::SmallVec;

/// Fills in `-1` and checks that the elements fit.
pub(super) fn resolve_shape(args: &Args, input: &[Dim], wanted: Shape) -> Outcome<Shape> {
    let elements = strides::product(input)?;
    let mut inferred = None;
    let mut rest = Dim::fixed(1);
    for (axis, dim) in wanted.iter().enumerate() {
        if dim.size == -1 {
            if inferred.replace(axis).is_some() {
                return Err(Problem::invalid("only one dimension can be inferred"));
            }
        } else if dim.size < 0 {
            return Err(Problem::invalid(format!("invalid shape dimension {}", dim.size)));
        } else {
            rest = rest.mul(dim)?;
        }
    }
    let mismatch = || {
        Problem::invalid(format!(
            "shape '{}' is invalid for input of size {}",
            strides::describe(&wanted),
            elements.size
        ))
    };
    let Some(axis) = inferred else {
        if !args.scope.same(&elements, &rest) {
            return Err(mismatch());
        }
        return Ok(wanted);
    };
    if rest.size == 0 {
        return Err(if elements.size == 0 {
            Problem::invalid(format!(
                "cannot reshape tensor of 0 elements into shape {} because the unspecified dimension size -1 can be any value and is ambiguous",
                strides::describe(&wanted)
            ))
        } else {
            mismatch()
        });
    }
    if elements.size % rest.size != 0 {
        return Err(mismatch());
    }
    let size = elements.floor_div(&rest)?;
    let mut shape = wanted;
    shape[axis] = size;
    Ok(shape)
}

fn as_view(input: &TensorType, shape: Shape) -> Outcome<TensorType> {
    match strides::view(input, &shape) {
        Some(strides) => Ok(input.viewed(shape, strides)),
        None => Err(Problem::invalid(
            "view size is not compatible with input tensor's size and stride (at least one dimension spans across two contiguous subspaces). Use .reshape(...) instead.",
        )),
    }
}

/// A view where possible, a contiguous copy otherwise.
pub(super) fn reshaped(input: &TensorType, shape: Shape) -> TensorType {
    match strides::view(input, &shape) {
        Some(strides) => input.viewed(shape, strides),
        None => TensorType::contiguous(input.dtype, shape),
    }
}

/// `view`, `reshape`, `flatten`, `unflatten` and their `_as` forms.
pub(super) fn reshape(args: &Args) -> Outcome<Value> {
    let input = args.first_tensor()?;
    let tensor = match args.op() {
        Op::View if args.bound.has("dtype") => view_dtype(args, input)?,
        Op::View => {
            let shape = resolve_shape(args, &input.shape, args.ints("size")?)?;
            as_view(input, shape)?
        }
        Op::ViewAs => as_view(input, checked_as(args, input)?)?,
        Op::ReshapeAs => reshaped(input, checked_as(args, input)?),
        Op::Reshape => reshaped(input, resolve_shape(args, &input.shape, args.ints("shape")?)?),
        Op::Flatten => flatten(args, input)?,
        _ => unflatten(args, input)?,
    };
    Ok(tensor.into())
}

fn checked_as(args: &Args, input: &TensorType) -> Outcome<Shape> {
    resolve_shape(args, &input.shape, args.tensor("other")?.shape.clone())
}

fn view_dtype(args: &Args, input: &TensorType) -> Outcome<TensorType> {
    let dtype = args.dtype("dtype")?.unwrap_or(input.dtype);
    let (from, to) = (input.dtype.size() as i64, dtype.size() as i64);
    let mut view = TensorType { dtype, ..input.clone() };
    if from == to {
        return Ok(TensorType { memory: None, ..view });
    }
    let (Some(last), Some(1)) = (view.shape.last_mut(), input.strides.last()) else {
        return Err(Problem::invalid("self.stride(-1) must be 1 to view a dtype of another size"));
    };
    let bytes = last.scaled(from)?;
    if bytes.size % to != 0 {
        return Err(Problem::invalid("self.size(-1) must be divisible to view as this dtype"));
    }
    *last = bytes.divided(to)?;
    let outer = view.strides.len() - 1;
    for stride in &mut view.strides[..outer] {
        *stride = stride.saturating_mul(from) / to;
    }
    view.offset = view.offset.saturating_mul(from) / to;
    view.memory = None;
    Ok(view)
}

fn flatten(args: &Args, input: &TensorType) -> Outcome<TensorType> {
    let start = args.axis("start_dim", input.rank())?;
    let end = args.axis("end_dim", input.rank())?;
    if start > end {
        return Err(Problem::invalid(
            "flatten() has invalid args: start_dim cannot come after end_dim",
        ));
    }
    if input.rank() == 0 {
        return Ok(reshaped(input, strides::shape([Dim::fixed(1)])));
    }
    if start == end {
        return Ok(input.clone());
    }
    let mut shape: Shape = input.shape[..start].into();
    shape.push(strides::product(&input.shape[start..=end])?);
    shape.extend(input.shape[end + 1..].iter().cloned());
    Ok(reshaped(input, shape))
}

fn unflatten(args: &Args, input: &TensorType) -> Outcome<TensorType> {
    let axis = args.axis("dim", input.rank())?;
    let sizes = args.ints("sizes")?;
    if sizes.is_empty() || input.rank() == 0 {
        return Err(Problem::invalid("unflatten: sizes must be non-empty"));
    }
    let split = resolve_shape(args, &input.shape[axis..=axis], sizes)?;
    let mut shape: Shape = input.shape[..axis].into();
    shape.extend(split);
    shape.extend(input.shape[axis + 1..].iter().cloned());
    as_view(input, shape)
}

/// Reordered dimensions.
pub(super) fn permute(args: &Args) -> Outcome<Value> {
    let input = args.first_tensor()?;
    let rank = input.rank();
    let mut order: SmallVec<[usize; 5]> = (0..rank).collect();
    match args.op() {
        Op::Transpose => {
            let (a, b) = (args.axis("dim0", rank)?, args.axis("dim1", rank)?);
            if rank > 0 {
                order.swap(a, b);
            }
        }
        Op::TransposeMatrix => {
            if rank > 2 {
                return Err(Problem::invalid(format!(
                    "t() expects a tensor with <= 2 dimensions, but self is {rank}D"
                )));
            }
            order.reverse();
        }
        Op::ReverseDims => order.reverse(),
        Op::MatrixTranspose => {
            if rank < 2 {
                return Err(Problem::invalid(format!(
                    "tensor.mT is only supported on matrices or batches of matrices. Got {rank}-D tensor."
                )));
            }
            order.swap(rank - 2, rank - 1);
        }
        Op::Movedim => order = moved(args, rank)?,
        _ => {
            let dims = args.ints("dims")?;
            if dims.len() != rank {
                return Err(Problem::invalid(format!(
                    "permute(sparse_coo): number of dimensions in the tensor input does not match the length of the desired ordering of dimensions i.e. input.dim() = {rank} is not equal to len(dims) = {}",
                    dims.len()
                )));
            }
            order.clear();
            for dim in &dims {
                let axis = wrap_axis(dim.size, rank)?;
                if order.contains(&axis) {
                    return Err(Problem::invalid("permute(): duplicate dims are not allowed."));
                }
                order.push(axis);
            }
        }
    }
    Ok(permuted(input, &order).into())
}

pub(super) fn permuted(input: &TensorType, order: &[usize]) -> TensorType {
    let shape = order.iter().map(|axis| input.shape[*axis].clone()).collect();
    let steps = order.iter().map(|axis| input.strides[*axis]).collect();
    input.viewed(shape, steps)
}

fn moved(args: &Args, rank: usize) -> Outcome<SmallVec<[usize; 5]>> {
    let sources = args.axes("source", rank)?.unwrap_or_default();
    let targets = args.axes("destination", rank)?.unwrap_or_default();
    if sources.len() != targets.len() {
        return Err(Problem::invalid(
            "movedim: Invalid source or destination dims: both must have the same length",
        ));
    }
    let mut order: SmallVec<[Option<usize>; 5]> = SmallVec::from_elem(None, rank);
    for (source, target) in sources.iter().zip(&targets) {
        if let Some(slot) = order.get_mut(*target) {
            *slot = Some(*source);
        }
    }
    let mut rest = (0..rank).filter(|axis| !sources.contains(axis));
    Ok(order.into_iter().map(|slot| slot.or_else(|| rest.next()).unwrap_or(0)).collect())
}

/// `squeeze`, `unsqueeze`.
pub(super) fn singleton(args: &Args) -> Outcome<Value> {
    let input = args.first_tensor()?;
    if args.op() == Op::Unsqueeze {
        let axis = wrap_axis(args.int("dim")?.size, input.rank() + 1)?;
        return Ok(unsqueezed(input, axis).into());
    }
    let axes = args.axes("dim", input.rank())?;
    let dropped = |axis: usize| {
        input.shape[axis].size == 1 && axes.as_ref().is_none_or(|axes| axes.contains(&axis))
    };
    let kept: SmallVec<[usize; 5]> = (0..input.rank()).filter(|axis| !dropped(*axis)).collect();
    Ok(permuted(input, &kept).into())
}

/// A new dimension of size one.
pub(super) fn unsqueezed(input: &TensorType, axis: usize) -> TensorType {
    let step = match input.shape.get(axis) {
        Some(dim) => dim.size.saturating_mul(input.strides[axis]),
        None => 1,
    };
    let (mut shape, mut steps) = (input.shape.clone(), input.strides.clone());
    shape.insert(axis, Dim::fixed(1));
    steps.insert(axis, step);
    input.viewed(shape, steps)
}

pub(super) fn expand(args: &Args) -> Outcome<Value> {
    let input = args.first_tensor()?;
    let sizes = match args.op() {
        Op::ExpandAs => args.tensor("other")?.shape.clone(),
        _ => args.ints("size")?,
    };
    args.scope.expand(input, &sizes).map(Value::Tensor)
}

pub(super) fn broadcast_tensors(args: &Args) -> Outcome<Value> {
    let tensors = args.tensors("tensors")?;
    let shape = args.scope.broadcast(tensors.iter().map(|tensor| tensor.shape.as_slice()))?;
    let views = tensors.iter().map(|tensor| args.scope.expand(tensor, &shape).map(Value::Tensor));
    views.collect::<Outcome<_>>().map(Value::Sequence)
}
