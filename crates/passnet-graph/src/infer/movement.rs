//! Copies of elements to other places.

use super::args::Args;
use super::dim::Dim;
use super::problem::{Inferred, Problem};
use super::strides;
use super::value::{Shape, TensorType, Value};
use super::view::reshaped;
use crate::ops::Op;
use crate::view::region;
use smallvec::SmallVec;

/// A new tensor that keeps channels-last where the argument has it, and is contiguous otherwise.
pub(super) fn suggested(input: &TensorType, shape: Shape) -> TensorType {
    let steps = if strides::suggests_channels_last(&input.shape, &input.strides)
        && shape.len() == input.rank()
    {
        strides::channels_last(&shape)
    } else {
        strides::contiguous(&shape)
    };
    TensorType::strided(input.dtype, shape, steps)
}

pub(super) fn pad(args: &Args) -> Inferred<Value> {
    let input = args.tensor("input")?;
    let pad = args.ints("pad")?;
    let mode = args.text("mode")?;
    if pad.len() % 2 != 0 {
        return Err(Problem::invalid("Padding length must be divisible by 2"));
    }
    if pad.len() > 2 * input.rank() {
        return Err(Problem::invalid(format!(
            "Length of pad should be no more than twice the number of dimensions of the input. Pad length is {} while the input has {} dimensions.",
            pad.len(),
            input.rank()
        )));
    }
    if !matches!(mode.as_deref(), None | Some("constant" | "reflect" | "replicate" | "circular")) {
        return Err(Problem::invalid("Unrecognised padding mode"));
    }
    let mut shape = input.shape.clone();
    for (place, sides) in pad.chunks(2).enumerate() {
        let axis = input.rank() - 1 - place;
        let size = input.shape[axis].size;
        if mode.as_deref() == Some("reflect") && sides.iter().any(|side| side.size >= size) {
            return Err(Problem::invalid(format!(
                "Padding size should be less than the corresponding input dimension, but got: padding ({}, {}) at dimension {axis} of input {}",
                sides[0].size,
                sides[1].size,
                strides::describe(&input.shape)
            )));
        }
        shape[axis] = shape[axis].add(&sides[0])?.add(&sides[1])?;
        if shape[axis].size < 0 {
            return Err(Problem::invalid(format!(
                "The input size {size}, plus negative padding {} and {}, resulted in a negative output size, which is invalid.",
                sides[0].size, sides[1].size
            )));
        }
    }
    if matches!(mode.as_deref(), None | Some("constant")) {
        if pad.iter().all(|side| side.size <= 0) {
            // Only cut: a clone of a narrowed view.
            return Ok(strides::like_tensor(
                &input.viewed(shape, input.strides.clone()),
                input.dtype,
            )
            .into());
        }
        return Ok(suggested(input, shape).into());
    }
    let spatial = pad.len() / 2;
    if !(spatial + 1..=spatial + 2).contains(&input.rank()) {
        return Err(Problem::invalid(format!(
            "Only 2D, 3D, 4D, 5D padding with non-constant padding are supported for now; got a {}D input and {} pads",
            input.rank(),
            pad.len()
        )));
    }
    Ok(suggested(input, shape).into())
}

pub(super) fn rearrange(args: &Args) -> Inferred<Value> {
    let input = args.first_tensor()?;
    let rank = input.rank();
    let copy = |shape: Shape| Ok(TensorType::contiguous(input.dtype, shape).into());
    match args.op() {
        Op::Roll => {
            let (shifts, dims) = (args.ints("shifts")?, args.optional_ints("dims")?);
            let count = dims.as_ref().map_or(0, |dims| dims.len());
            if count != shifts.len() && !(count == 0 && shifts.len() == 1) {
                return Err(Problem::invalid(format!(
                    "shifts and dimensions must align. shifts: {}, dims:{count}",
                    shifts.len()
                )));
            }
            for dim in dims.iter().flatten() {
                super::args::wrap_axis(dim.size, rank)?;
            }
            copy(input.shape.clone())
        }
        Op::Flip => {
            args.axes("dims", rank)?;
            Ok(strides::like_tensor(input, input.dtype).into())
        }
        Op::Rot90 => {
            let axes = args.axes("dims", rank)?.unwrap_or_default();
            let [first, second] = axes.as_slice() else {
                return Err(Problem::invalid("expected total rotation dims == 2"));
            };
            let mut shape = input.shape.clone();
            if args.int("k")?.size.rem_euclid(2) == 1 && rank >= 2 {
                shape.swap(*first, *second);
            }
            copy(shape)
        }
        Op::Repeat => repeat(input, &args.ints("repeats")?),
        Op::Tile => {
            let mut repeats = args.ints("dims")?;
            while repeats.len() < rank {
                repeats.insert(0, Dim::fixed(1));
            }
            repeat(input, &repeats)
        }
        Op::RepeatInterleave => repeat_interleave(args, input),
        Op::Clone => {
            let steps = match args.text("memory_format")?.as_deref() {
                Some(name) if name.contains("channels_last") => {
                    strides::channels_last(&input.shape)
                }
                Some(name) if name.contains("contiguous") => strides::contiguous(&input.shape),
                _ => strides::like(input),
            };
            Ok(TensorType::strided(input.dtype, input.shape.clone(), steps).into())
        }
        Op::Copy => {
            let source = args.tensor("src")?;
            let shape = args.scope.broadcast([input.shape.as_slice(), source.shape.as_slice()])?;
            if shape.len() != rank || shape.iter().zip(&input.shape).any(|(a, b)| a.size != b.size)
            {
                return Err(Problem::invalid(format!(
                    "output with shape {} doesn't match the broadcast shape {}",
                    strides::describe(&input.shape),
                    strides::describe(&shape)
                )));
            }
            Ok(input.clone().into())
        }
        Op::Tril | Op::Triu => {
            if rank < 2 {
                return Err(Problem::invalid(format!(
                    "{}: input tensor must have at least 2 dimensions",
                    args.op().name()
                )));
            }
            copy(input.shape.clone())
        }
        Op::Diag => diag(args, input),
        Op::DiagEmbed => {
            let (first, second) = (args.axis("dim1", rank + 1)?, args.axis("dim2", rank + 1)?);
            let Some(last) = input.shape.last().filter(|_| first != second) else {
                return Err(Problem::invalid("diagonal dimensions cannot be identical"));
            };
            let side = last.offset(args.int("offset")?.size.abs())?;
            let mut shape: Shape = input.shape[..rank - 1].into();
            for axis in [first.min(second), first.max(second)] {
                shape.insert(axis.min(shape.len()), side.clone());
            }
            copy(shape)
        }
        op => shuffle(args, op, input),
    }
}

fn diag(args: &Args, input: &TensorType) -> Inferred<Value> {
    let offset = args.int("diagonal")?.size;
    match input.rank() {
        1 => {
            let side = input.shape[0].offset(offset.saturating_abs())?;
            Ok(TensorType::contiguous(input.dtype, strides::shape([side.clone(), side])).into())
        }
        2 => {
            let diagonal = region::diagonal(input, offset, 0, 1)?;
            Ok(TensorType::contiguous(input.dtype, diagonal.shape).into())
        }
        rank => Err(Problem::invalid(format!("diag(): Supports 1D or 2D tensors. Got {rank}D"))),
    }
}

fn repeat(input: &TensorType, repeats: &[Dim]) -> Inferred<Value> {
    let Some(missing) = repeats.len().checked_sub(input.rank()) else {
        return Err(Problem::invalid(
            "Number of dimensions of repeat dims can not be smaller than number of dimensions of tensor",
        ));
    };
    let mut shape = Shape::new();
    for (axis, times) in repeats.iter().enumerate() {
        shape.push(match axis.checked_sub(missing) {
            Some(own) => input.shape[own].mul(times)?,
            None => times.clone(),
        });
    }
    Ok(TensorType::contiguous(input.dtype, shape).into())
}

fn repeat_interleave(args: &Args, input: &TensorType) -> Inferred<Value> {
    let flat;
    let (input, axis) = match args.optional_int("dim")? {
        Some(axis) => (input, super::args::wrap_axis(axis.size, input.rank())?),
        None => {
            flat = reshaped(input, strides::shape([strides::product(&input.shape)?]));
            (&flat, 0)
        }
    };
    let size = super::scalar::dim_at(&input.shape, axis)?;
    let total = match (&*args.operand("repeats")?, args.optional_int("output_size")?) {
        (_, Some(total)) => total,
        (Value::Scalar(times), _) => {
            let times = times
                .as_dim()
                .ok_or_else(|| Problem::unknown("`repeats` depends on the elements of a tensor"))?;
            size.mul(&times)?
        }
        (Value::Tensor(times), _) => {
            let unknown = || Problem::unknown("`repeats` depends on the elements of a tensor");
            let counts = args.scope.known_elements(times).ok_or_else(unknown)?;
            let total: f64 = counts.iter().sum();
            if counts.len() == 1 { size.scaled(total as i64)? } else { Dim::fixed(total as i64) }
        }
        (other, _) => {
            return Err(Problem::invalid(format!(
                "`repeats` must be a Tensor or an int, not {}",
                other.type_name()
            )));
        }
    };
    let mut shape = input.shape.clone();
    shape[axis] = total;
    Ok(TensorType::contiguous(input.dtype, shape).into())
}

/// Channels and space exchanged.
fn shuffle(args: &Args, op: Op, input: &TensorType) -> Inferred<Value> {
    let rank = input.rank();
    if rank < 3 {
        return Err(Problem::invalid(format!(
            "{} expects input to have at least 3 dimensions, but got input with {rank} dimension(s)",
            op.name()
        )));
    }
    let mut shape = input.shape.clone();
    let factor = args.int(match op {
        Op::PixelShuffle => "upscale_factor",
        Op::PixelUnshuffle => "downscale_factor",
        _ => "groups",
    })?;
    if factor.size < 1 {
        return Err(Problem::invalid(format!("{} expects a positive factor", op.name())));
    }
    let square = factor.mul(&factor)?;
    let divisible = |dim: &Dim, by: &Dim| {
        if dim.size % by.size == 0 {
            Ok(())
        } else {
            Err(Problem::invalid(format!(
                "{} expects its input's dimension of size {} to be divisible by {}",
                op.name(),
                dim.size,
                by.size
            )))
        }
    };
    match op {
        Op::PixelShuffle => {
            divisible(&shape[rank - 3], &square)?;
            shape[rank - 3] = shape[rank - 3].floor_div(&square)?;
            shape[rank - 2] = shape[rank - 2].mul(&factor)?;
            shape[rank - 1] = shape[rank - 1].mul(&factor)?;
        }
        Op::PixelUnshuffle => {
            for axis in [rank - 2, rank - 1] {
                divisible(&shape[axis], &factor)?;
                shape[axis] = shape[axis].floor_div(&factor)?;
            }
            shape[rank - 3] = shape[rank - 3].mul(&square)?;
        }
        _ => divisible(&shape[1], &factor)?,
    }
    Ok(suggested(input, shape).into())
}

/// `unfold` and `fold`: patches as columns, and back.
pub(super) fn patches(args: &Args) -> Inferred<Value> {
    let input = args.tensor("input")?;
    let kernel = args.spatial("kernel_size", 2)?;
    let (dilation, padding) = (args.spatial("dilation", 2)?, args.spatial("padding", 2)?);
    let stride = args.spatial("stride", 2)?;
    let blocks = |sizes: &[Dim]| -> Inferred<SmallVec<[Dim; 2]>> {
        (0..2)
            .map(|i| {
                let covered = kernel[i].offset(-1)?.mul(&dilation[i])?.offset(1)?;
                let free = sizes[i].add(&padding[i].scaled(2)?)?.sub(&covered)?;
                let count = free.floor_div(&stride[i])?.offset(1)?;
                if count.size < 1 {
                    return Err(Problem::invalid(format!(
                        "Given input with spatial size {}, kernel_size={}, calculated shape of the array of sliding blocks has a non-positive component",
                        strides::describe(sizes),
                        strides::describe(&kernel)
                    )));
                }
                Ok(count)
            })
            .collect()
    };
    let area = kernel[0].mul(&kernel[1])?;
    let rank = input.rank();
    if args.op() == Op::Unfold {
        if !matches!(rank, 3 | 4) {
            return Err(Problem::invalid(format!("Expected 3D or 4D input, got {rank}D")));
        }
        let counts = blocks(&input.shape[rank - 2..])?;
        let mut shape: Shape = input.shape[..rank - 3].into();
        shape.push(input.shape[rank - 3].mul(&area)?);
        shape.push(counts[0].mul(&counts[1])?);
        return Ok(TensorType::contiguous(input.dtype, shape).into());
    }
    let output = args.spatial("output_size", 2)?;
    if !matches!(rank, 2 | 3) {
        return Err(Problem::invalid(format!("Expected 2D or 3D input, got {rank}D")));
    }
    let counts = blocks(&output)?;
    let columns = counts[0].mul(&counts[1])?;
    let channels = &input.shape[rank - 2];
    if channels.size % area.size.max(1) != 0 || !args.scope.same(&input.shape[rank - 1], &columns) {
        return Err(Problem::invalid(format!(
            "Given output_size={}, kernel_size={}, expected size of input's dimension 2 to match the calculated number of sliding blocks {}, but got input of size {}",
            strides::describe(&output),
            strides::describe(&kernel),
            columns.size,
            strides::describe(&input.shape)
        )));
    }
    let mut shape: Shape = input.shape[..rank - 2].into();
    shape.push(channels.floor_div(&area)?);
    shape.extend(output);
    Ok(TensorType::contiguous(input.dtype, shape).into())
}
