//! New metadata over the same memory, and the operations that are views where they can be.

use super::args::{Args, wrap_axis};
use super::dim::Dim;
use super::value::{Shape, Strides, TensorType, Value};
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

/// Part of one dimension.
pub(super) fn narrowed(
    input: &TensorType,
    axis: usize,
    start: i64,
    length: Dim,
    step: i64,
) -> TensorType {
    let mut view = input.clone();
    view.offset = view.offset.saturating_add(start.saturating_mul(view.strides[axis]));
    view.strides[axis] = view.strides[axis].saturating_mul(step);
    view.shape[axis] = length;
    view
}

/// One place of one dimension.
pub(super) fn selected(input: &TensorType, axis: usize, index: i64) -> Outcome<TensorType> {
    let Some(dim) = input.shape.get(axis) else {
        return Err(Problem::invalid("select() cannot be applied to a 0-dim tensor."));
    };
    let size = dim.size;
    if index < -size || index >= size {
        return Err(Problem::invalid(format!(
            "index {index} is out of bounds for dimension {axis} with size {size}"
        )));
    }
    let index = if index < 0 { index + size } else { index };
    let mut view = input.clone();
    view.offset = view.offset.saturating_add(index.saturating_mul(view.strides[axis]));
    view.shape.remove(axis);
    view.strides.remove(axis);
    Ok(view)
}

/// Pieces along a dimension.
pub(super) fn pieces(args: &Args) -> Outcome<Value> {
    let input = args.first_tensor()?;
    if input.rank() == 0 {
        return Err(Problem::invalid("it expects at least a 1-dimensional tensor"));
    }
    let axis = args.axis("dim", input.rank())?;
    let dim = input.shape[axis].clone();
    let lengths: Vec<Dim> = match args.op() {
        Op::Chunk => {
            let chunks = args.int("chunks")?;
            if chunks.size < 1 {
                return Err(Problem::invalid("chunk expects `chunks` to be greater than 0"));
            }
            if dim.size == 0 {
                return equal(input, axis, vec![Dim::fixed(0); chunks.size.min(4096) as usize]);
            }
            let step = dim.add(&chunks)?.offset(-1)?.floor_div(&chunks)?;
            split_by(&dim, &step)?
        }
        Op::Split => split(args, &dim, axis)?,
        _ => return tensor_split(args, input, axis),
    };
    equal(input, axis, lengths)
}

/// Views of the given lengths, one after the other.
fn equal(input: &TensorType, axis: usize, lengths: Vec<Dim>) -> Outcome<Value> {
    let mut start = 0;
    let views = lengths.into_iter().map(|length| {
        let size = length.size;
        let view = narrowed(input, axis, start, length, 1);
        start += size;
        Value::Tensor(view)
    });
    Ok(Value::Sequence(views.collect()))
}

/// Longest list of views an operation may return.
const MAX_PIECES: i64 = 1 << 16;

fn split_by(dim: &Dim, step: &Dim) -> Outcome<Vec<Dim>> {
    if step.size < 0 || (step.size == 0 && dim.size != 0) {
        return Err(Problem::invalid(format!(
            "split expects split_size be non-negative, but got split_size={}",
            step.size
        )));
    }
    if step.size == 0 {
        return Ok(vec![dim.clone()]);
    }
    let count = ((dim.size + step.size - 1) / step.size).max(1);
    if count > MAX_PIECES {
        return Err(Problem::unknown("too many pieces"));
    }
    let mut lengths = vec![step.clone(); (count - 1) as usize];
    lengths.push(dim.sub(&step.scaled(count - 1)?)?);
    Ok(lengths)
}

fn split(args: &Args, dim: &Dim, axis: usize) -> Outcome<Vec<Dim>> {
    let name = ["split_size_or_sections", "split_size", "split_sizes"]
        .into_iter()
        .find(|name| args.bound.has(name))
        .unwrap_or("split_size");
    if matches!(&*args.value(name)?, Value::Scalar(_)) {
        return split_by(dim, &args.int(name)?);
    }
    let lengths = args.ints(name)?;
    let total = lengths.iter().try_fold(Dim::fixed(0), |total, length| total.add(length))?;
    if lengths.iter().any(|length| length.size < 0) || !args.scope.same(dim, &total) {
        return Err(Problem::invalid(format!(
            "split_with_sizes expects split_sizes to sum exactly to {} (input tensor's size at dimension {axis}), but got split_sizes={}",
            dim.size,
            strides::describe(&lengths)
        )));
    }
    Ok(lengths.into_vec())
}

fn tensor_split(args: &Args, input: &TensorType, axis: usize) -> Outcome<Value> {
    let name = ["indices_or_sections", "sections", "indices"]
        .into_iter()
        .find(|name| args.bound.has(name))
        .unwrap_or("sections");
    let dim = &input.shape[axis];
    if matches!(&*args.value(name)?, Value::Scalar(_)) {
        let count = args.int(name)?.size;
        if !(1..=MAX_PIECES).contains(&count) {
            return Err(Problem::invalid("number of sections must be larger than 0"));
        }
        let (short, longer) = (dim.size / count, dim.size % count);
        let lengths = (0..count).map(|i| Dim::fixed(short + i64::from(i < longer)));
        return equal(input, axis, lengths.collect());
    }
    let mut views = Vec::new();
    let mut start = 0;
    let clamp = |index: i64| {
        let index = if index < 0 { index.saturating_add(dim.size) } else { index };
        index.clamp(0, dim.size)
    };
    for end in args.ints(name)?.iter().map(|index| clamp(index.size)).chain([dim.size]) {
        views.push(narrowed(input, axis, start, Dim::fixed((end - start).max(0)), 1).into());
        start = end;
    }
    Ok(Value::Sequence(views))
}

/// `narrow`, `select`, `unbind`, `diagonal`, `unfold`, `as_strided`.
pub(super) fn part(args: &Args) -> Outcome<Value> {
    let input = args.first_tensor()?;
    let rank = input.rank();
    match args.op() {
        Op::Narrow => {
            let axis = args.axis("dim", rank)?;
            let size = super::scalar::dim_at(&input.shape, axis)?.size;
            let (start, length) = (args.int("start")?.size, args.int("length")?);
            let start = if start < 0 { start.saturating_add(size) } else { start };
            if start < 0 || length.size < 0 || start > size - length.size {
                return Err(Problem::invalid(format!(
                    "start ({start}) + length ({}) exceeds dimension size ({size}).",
                    length.size
                )));
            }
            Ok(narrowed(input, axis, start, length, 1).into())
        }
        Op::Select => {
            let axis = args.axis("dim", rank)?;
            Ok(selected(input, axis, args.int("index")?.size)?.into())
        }
        Op::Unbind => {
            let axis = args.axis("dim", rank)?;
            let size = super::scalar::dim_at(&input.shape, axis)?.size;
            if size > MAX_PIECES {
                return Err(Problem::unknown("too many pieces"));
            }
            let views = (0..size).map(|index| selected(input, axis, index).map(Value::Tensor));
            views.collect::<Outcome<_>>().map(Value::Sequence)
        }
        Op::Diagonal => diagonal(input, args).map(Value::Tensor),
        Op::UnfoldDim => {
            let axis = args.axis("dimension", rank)?;
            let (size, step) = (args.int("size")?, args.int("step")?);
            let own = input.shape.get(axis).cloned().unwrap_or(Dim::fixed(1));
            if size.size < 0 || size.size > own.size || step.size < 1 {
                return Err(Problem::invalid(format!(
                    "maximum size for tensor at dimension {axis} is {} but size is {}",
                    own.size, size.size
                )));
            }
            let mut view = input.clone();
            let stride = view.strides.get(axis).copied().unwrap_or(1);
            if let Some(dim) = view.shape.get_mut(axis) {
                *dim = own.sub(&size)?.floor_div(&step)?.offset(1)?;
                view.strides[axis] = stride.saturating_mul(step.size);
            }
            view.shape.push(size);
            view.strides.push(stride);
            Ok(view.into())
        }
        _ => {
            let steps: Strides = args.ints("stride")?.iter().map(|stride| stride.size).collect();
            let shape = args.ints("size")?;
            if steps.len() != shape.len() || steps.iter().any(|stride| *stride < 0) {
                return Err(Problem::invalid("mismatch in length of strides and shape"));
            }
            let mut view = input.viewed(shape, steps);
            if let Some(offset) = args.optional_int("storage_offset")? {
                view.offset = offset.size;
            }
            Ok(view.into())
        }
    }
}

fn diagonal(input: &TensorType, args: &Args) -> Outcome<TensorType> {
    let rank = input.rank();
    let (first, second) = (args.axis("dim1", rank)?, args.axis("dim2", rank)?);
    if first == second || rank < 2 {
        return Err(Problem::invalid("diagonal dimensions cannot be identical"));
    }
    diagonal_view(input, args.int("offset")?.size, first, second)
}

pub(super) fn diagonal_view(
    input: &TensorType,
    offset: i64,
    first: usize,
    second: usize,
) -> Outcome<TensorType> {
    let (rows, columns) = (&input.shape[first], &input.shape[second]);
    let length = if offset >= 0 {
        rows.min(&columns.offset(offset.saturating_neg())?)?
    } else {
        rows.offset(offset)?.min(columns)?
    };
    let length = if length.size < 0 { Dim::fixed(0) } else { length };
    let mut view = input.clone();
    if length.size > 0 {
        let (axis, by) = if offset >= 0 { (second, offset) } else { (first, -offset) };
        view.offset = view.offset.saturating_add(by.saturating_mul(view.strides[axis]));
    }
    let step = view.strides[first].saturating_add(view.strides[second]);
    for axis in [first.max(second), first.min(second)] {
        view.shape.remove(axis);
        view.strides.remove(axis);
    }
    view.shape.push(length);
    view.strides.push(step);
    Ok(view)
}
