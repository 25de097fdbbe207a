//! New metadata over the same memory, and the operations that are views where they can be.

use super::args::{Args, wrap_axis};
use super::dim::Dim;
use super::problem::{Inferred, Problem};
use super::value::{Shape, TensorType, Value};
use crate::ops::Op;
use crate::view::{region, shape};

/// Fills in `-1` and checks that the elements fit.
fn resolve_shape(args: &Args, input: &[Dim], wanted: &[Dim]) -> Inferred<Shape> {
    Ok(shape::resolved(input, wanted, |a, b| args.scope.same(a, b))?)
}

/// A view where possible, a contiguous copy otherwise.
pub(super) fn reshaped(input: &TensorType, shape: Shape) -> TensorType {
    match region::reshaped(input, shape.clone()) {
        Some(view) => view,
        None => TensorType::contiguous(input.dtype, shape),
    }
}

/// `view`, `reshape`, `flatten`, `unflatten` and their `_as` forms.
pub(super) fn reshape(args: &Args) -> Inferred<Value> {
    let input = args.first_tensor()?;
    let tensor = match args.op() {
        Op::View if args.bound.has("dtype") => view_dtype(args, input)?,
        Op::View => region::viewed(input, resolve_shape(args, &input.shape, &args.ints("size")?)?)?,
        Op::ViewAs => region::viewed(input, checked_as(args, input)?)?,
        Op::ReshapeAs => reshaped(input, checked_as(args, input)?),
        Op::Reshape => reshaped(input, resolve_shape(args, &input.shape, &args.ints("shape")?)?),
        Op::Flatten => {
            let (start, end) =
                (args.axis("start_dim", input.rank())?, args.axis("end_dim", input.rank())?);
            match shape::flattened(&input.shape, start, end)? {
                Some(shape) => reshaped(input, shape),
                None => input.clone(),
            }
        }
        _ => {
            let (axis, sizes) = (args.axis("dim", input.rank())?, args.ints("sizes")?);
            let same = |a: &Dim, b: &Dim| args.scope.same(a, b);
            region::viewed(input, shape::unflattened(&input.shape, axis, &sizes, same)?)?
        }
    };
    Ok(tensor.into())
}

fn checked_as(args: &Args, input: &TensorType) -> Inferred<Shape> {
    resolve_shape(args, &input.shape, &args.tensor("other")?.shape)
}

fn view_dtype(args: &Args, input: &TensorType) -> Inferred<TensorType> {
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

/// Reordered dimensions.
pub(super) fn permute(args: &Args) -> Inferred<Value> {
    let input = args.first_tensor()?;
    let rank = input.rank();
    let order = match args.op() {
        Op::Transpose => shape::swapped(args.axis("dim0", rank)?, args.axis("dim1", rank)?, rank),
        Op::TransposeMatrix => shape::turned_matrix(rank)?,
        Op::ReverseDims => (0..rank).rev().collect(),
        Op::MatrixTranspose => shape::turned_matrices(rank)?,
        Op::Movedim => shape::moved(&args.numbers("source")?, &args.numbers("destination")?, rank)?,
        _ => shape::order(&args.numbers("dims")?, rank)?,
    };
    Ok(region::permuted(input, &order).into())
}

/// `squeeze`, `unsqueeze`.
pub(super) fn singleton(args: &Args) -> Inferred<Value> {
    let input = args.first_tensor()?;
    if args.op() == Op::Unsqueeze {
        let axis = wrap_axis(args.int("dim")?.size, input.rank() + 1)?;
        return Ok(region::unsqueezed(input, axis).into());
    }
    Ok(region::squeezed(input, args.axes("dim", input.rank())?.as_deref()).into())
}

pub(super) fn expand(args: &Args) -> Inferred<Value> {
    let input = args.first_tensor()?;
    let sizes = match args.op() {
        Op::ExpandAs => args.tensor("other")?.shape.clone(),
        _ => args.ints("size")?,
    };
    args.scope.expand(input, &sizes).map(Value::Tensor)
}

pub(super) fn broadcast_tensors(args: &Args) -> Inferred<Value> {
    let tensors = args.tensors("tensors")?;
    let shape = args.scope.broadcast(tensors.iter().map(|tensor| tensor.shape.as_slice()))?;
    let views = tensors.iter().map(|tensor| args.scope.expand(tensor, &shape).map(Value::Tensor));
    views.collect::<Inferred<_>>().map(Value::Sequence)
}
