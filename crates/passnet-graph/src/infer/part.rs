//! Views of parts of a tensor: slices, single places, pieces along a dimension, diagonals, windows.

use super::args::Args;
use super::dim::Dim;
use super::problem::{Inferred, Problem};
use super::value::{Strides, TensorType, Value};
use crate::ops::Op;
use crate::view::shape::{self, Run};
use crate::view::{List, region};

/// Longest list of views an operation may return.
const MAX_PIECES: i64 = 1 << 16;

/// Pieces along a dimension.
pub(super) fn pieces(args: &Args) -> Inferred<Value> {
    let input = args.first_tensor()?;
    if input.rank() == 0 {
        return Err(Problem::invalid("it expects at least a 1-dimensional tensor"));
    }
    let axis = args.axis("dim", input.rank())?;
    let dim = &input.shape[axis];
    let lengths = match args.op() {
        Op::Chunk => shape::chunk(dim, &args.int("chunks")?, MAX_PIECES)?,
        Op::Split => split(args, dim, axis)?,
        _ => return tensor_split(args, input, axis),
    };
    Ok(sequence(region::consecutive(input, axis, lengths)))
}

fn sequence(views: Vec<TensorType>) -> Value {
    Value::Sequence(views.into_iter().map(Value::Tensor).collect())
}

fn split(args: &Args, dim: &Dim, axis: usize) -> Inferred<Vec<Dim>> {
    let name = ["split_size_or_sections", "split_size", "split_sizes"]
        .into_iter()
        .find(|name| args.bound.has(name))
        .unwrap_or("split_size");
    if matches!(&*args.value(name)?, Value::Scalar(_)) {
        return Ok(shape::split(dim, &args.int(name)?, MAX_PIECES)?);
    }
    let lengths = args.ints(name)?;
    shape::check_lengths(dim, &lengths, axis, |a, b| args.scope.same(a, b))?;
    Ok(lengths.into_vec())
}

fn tensor_split(args: &Args, input: &TensorType, axis: usize) -> Inferred<Value> {
    let name = ["indices_or_sections", "sections", "indices"]
        .into_iter()
        .find(|name| args.bound.has(name))
        .unwrap_or("sections");
    let size = input.shape[axis].size;
    if matches!(&*args.value(name)?, Value::Scalar(_)) {
        let lengths = shape::sections(size, args.int(name)?.size, MAX_PIECES)?;
        let lengths = lengths.into_iter().map(Dim::fixed).collect();
        return Ok(sequence(region::consecutive(input, axis, lengths)));
    }
    let cuts = shape::cuts(size, &args.numbers(name)?);
    let part = |run: Run<i64>| {
        let run = Run { start: run.start, length: Dim::fixed(run.length), step: run.step };
        region::narrowed(input, axis, run)
    };
    Ok(sequence(cuts.into_iter().map(part).collect()))
}

/// `narrow`, `select`, `unbind`, `diagonal`, `unfold`, `as_strided`.
pub(super) fn part(args: &Args) -> Inferred<Value> {
    let input = args.first_tensor()?;
    let rank = input.rank();
    let view = match args.op() {
        Op::Narrow => {
            let axis = args.axis("dim", rank)?;
            let size = super::scalar::dim_at(&input.shape, axis)?;
            let run = shape::narrow(&size, args.int("start")?.size, args.int("length")?)?;
            region::narrowed(input, axis, run)
        }
        Op::Select => region::selected(input, args.axis("dim", rank)?, args.int("index")?.size)?,
        Op::Unbind => {
            let axis = args.axis("dim", rank)?;
            return Ok(sequence(region::unbound(input, axis, MAX_PIECES)?));
        }
        Op::Diagonal => {
            let (first, second) = (args.axis("dim1", rank)?, args.axis("dim2", rank)?);
            region::diagonal(input, args.int("offset")?.size, first, second)?
        }
        Op::UnfoldDim => {
            let axis = args.axis("dimension", rank)?;
            region::unfolded(input, axis, args.int("size")?, &args.int("step")?)?
        }
        _ => {
            let (steps, shape): (Strides, List<Dim>) =
                (args.numbers("stride")?, args.ints("size")?);
            if steps.len() != shape.len() || steps.iter().any(|stride| *stride < 0) {
                return Err(Problem::invalid("mismatch in length of strides and shape"));
            }
            let mut view = input.viewed(shape, steps);
            if let Some(offset) = args.optional_int("storage_offset")? {
                view.offset = offset.size;
            }
            view
        }
    };
    Ok(view.into())
}
