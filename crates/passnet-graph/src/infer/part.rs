//! Views of parts of a tensor: slices, single places, pieces along a dimension, diagonals, windows.

use super::args::Args;
use super::dim::Dim;
use super::value::{Strides, TensorType, Value};
use super::{Outcome, Problem, strides};
use crate::ops::Op;

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
