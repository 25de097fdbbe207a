//! Copies of elements to other places.

use super::{Args, OpFunction};
use crate::engine::Value;
use crate::native::error::{Result, bail, ensure};
use crate::native::ops::fold::{self, Patches};
use crate::native::ops::movement::{self, PadMode, Triangle};
use crate::native::ops::pointwise::{self, Binary, Logical, Unary};
use crate::native::tensor::{Scalar, Tensor};
use passnet_graph::DType;
use passnet_graph::ops::Op;

pub(super) fn function_of(op: Op) -> Option<OpFunction> {
    Some(match op {
        Op::Cat | Op::Stack | Op::Hstack | Op::Vstack => join,
        Op::Pad | Op::ConstantPadNd => pad,
        Op::Diff => diff,
        Op::Roll | Op::Flip | Op::Rot90 | Op::Repeat | Op::Tile => rearrange,
        Op::RepeatInterleave => repeat_interleave,
        Op::Clone => clone,
        Op::Copy => copy,
        Op::Tril | Op::Triu | Op::Diag | Op::DiagEmbed => diagonal,
        Op::PixelShuffle | Op::PixelUnshuffle | Op::ChannelShuffle => shuffle,
        Op::Unfold | Op::Fold => patches,
        Op::Meshgrid | Op::CartesianProd => grid,
        Op::Complex | Op::Polar => complex,
        _ => return None,
    })
}

fn join(args: &Args<'_>) -> Result<Value> {
    let tensors = args.tensors("tensors")?;
    let at_least = |rank: usize| -> Result<Vec<Tensor>> {
        tensors
            .iter()
            .map(|t| match (t.ndim(), rank) {
                (0, 1) => t.reshape(&[1]),
                (0, _) => t.reshape(&[1, 1]),
                (1, 2) => t.unsqueeze(0),
                _ => Ok(t.clone()),
            })
            .collect()
    };
    Ok(match args.op {
        Op::Cat => movement::cat(&tensors, args.int("dim")?)?,
        Op::Stack => movement::stack(&tensors, args.int("dim")?)?,
        Op::Vstack => movement::cat(&at_least(2)?, 0)?,
        _ => {
            let tensors = at_least(1)?;
            let dim = i64::from(tensors.first().is_some_and(|t| t.ndim() > 1));
            movement::cat(&tensors, dim)?
        }
    }
    .into())
}

/// Neighbours along a dimension, subtracted `n` times, after what is put before and behind.
fn diff(args: &Args<'_>) -> Result<Value> {
    let (input, times) = (args.input()?, args.int("n")?);
    ensure!(input.ndim() > 0, Value, "diff expects input to be at least one-dimensional");
    ensure!(times >= 0, Value, "order must be non-negative but got {times}");
    let dim = input.dim(args.int("dim")?)? as i64;
    if times == 0 {
        return Ok(input.copy()?.into());
    }
    let (before, behind) = (args.optional_tensor("prepend")?, args.optional_tensor("append")?);
    let parts: Vec<Tensor> = before.into_iter().chain([input]).chain(behind).cloned().collect();
    let mut result = if parts.len() == 1 { input.clone() } else { movement::cat(&parts, dim)? };
    for _ in 0..times.min(result.size(dim)? as i64) {
        let length = result.size(dim)? - 1;
        let (later, earlier) = (result.narrow(dim, 1, length)?, result.narrow(dim, 0, length)?);
        let (later, earlier) = (later.into(), earlier.into());
        result = match result.dtype() {
            DType::Bool => pointwise::logical(Logical::Xor, &later, &earlier)?,
            _ => pointwise::binary(Binary::Add { alpha: -1.0 }, &later, &earlier)?,
        };
    }
    Ok(result.into())
}

fn pad(args: &Args<'_>) -> Result<Value> {
    let value = match args.value("value") {
        Value::None => Scalar::Float(0.0),
        _ => args.number("value")?,
    };
    let mode = match args.text("mode") {
        None | Some("constant") => PadMode::Constant(value),
        Some("reflect") => PadMode::Reflect,
        Some("replicate") => PadMode::Replicate,
        Some("circular") => PadMode::Circular,
        Some(other) => bail!(Value, "Unrecognised padding mode {other}"),
    };
    Ok(movement::pad(args.input()?, &args.ints("pad")?, mode)?.into())
}

fn rearrange(args: &Args<'_>) -> Result<Value> {
    let input = args.input()?;
    Ok(match args.op {
        Op::Roll => {
            let dims = args.optional_ints("dims")?.unwrap_or_default();
            movement::roll(input, &args.ints("shifts")?, &dims)?
        }
        Op::Flip => movement::flip(input, &args.ints("dims")?)?,
        Op::Repeat => movement::repeat(input, &args.sizes("repeats")?)?,
        Op::Tile => movement::tile(input, &args.sizes("dims")?)?,
        _ => rot90(input, args.int("k")?, &args.ints("dims")?)?,
    }
    .into())
}

fn rot90(input: &Tensor, turns: i64, dims: &[i64]) -> Result<Tensor> {
    let [a, b] = dims else {
        bail!(Value, "expected total rotation dims == 2, but got {}", dims.len())
    };
    match turns.rem_euclid(4) {
        1 => movement::flip(input, &[*b])?.transpose(*a, *b)?.contiguous(),
        2 => movement::flip(input, dims),
        3 => movement::flip(input, &[*a])?.transpose(*a, *b)?.contiguous(),
        _ => input.copy(),
    }
}

fn repeat_interleave(args: &Args<'_>) -> Result<Value> {
    let (input, dim) = (args.input()?, args.optional_int("dim")?);
    Ok(match args.value("repeats") {
        Value::Tensor(counts) if counts.numel() != 1 || counts.ndim() > 0 => {
            movement::repeat_interleave_each(input, counts, dim)?
        }
        _ => {
            let count = args.int("repeats")?;
            ensure!(count >= 0, Value, "repeats has to be positive, got {count}");
            movement::repeat_interleave(input, count as usize, dim)?
        }
    }
    .into())
}

fn clone(args: &Args<'_>) -> Result<Value> {
    let input = args.input()?;
    Ok(match args.text("memory_format") {
        Some(name) if name.contains("channels_last") => {
            let copy = input.copy()?;
            copy.channels_last()?
        }
        Some(name) if name.contains("contiguous_format") => input.dense_copy(input.dtype())?,
        _ => input.copy()?,
    }
    .into())
}

fn copy(args: &Args<'_>) -> Result<Value> {
    let target = args.written()?;
    target.copy_from(args.tensor("src")?)?;
    Ok(target.into())
}

fn diagonal(args: &Args<'_>) -> Result<Value> {
    let input = args.input()?;
    Ok(match args.op {
        Op::Tril => movement::triangle(input, Triangle::Lower, args.int("diagonal")?)?,
        Op::Triu => movement::triangle(input, Triangle::Upper, args.int("diagonal")?)?,
        Op::Diag => movement::diag(input, args.int("diagonal")?)?,
        _ => {
            let embedded = movement::diag_embed(input, args.int("offset")?)?;
            let (first, second) = (args.int("dim1")?, args.int("dim2")?);
            embedded.movedim(&[-2, -1], &[first, second])?
        }
    }
    .into())
}

fn shuffle(args: &Args<'_>) -> Result<Value> {
    let input = args.input()?;
    Ok(match args.op {
        Op::PixelShuffle => movement::pixel_shuffle(input, args.size("upscale_factor")?)?,
        Op::PixelUnshuffle => movement::pixel_unshuffle(input, args.size("downscale_factor")?)?,
        _ => movement::channel_shuffle(input, args.size("groups")?)?,
    }
    .into())
}

fn patches(args: &Args<'_>) -> Result<Value> {
    let pair = |name: &str| -> Result<[usize; 2]> {
        let sizes = args.spatial(name, 2)?;
        Ok([sizes[0], sizes[1]])
    };
    let patches = Patches {
        kernel: pair("kernel_size")?,
        dilation: pair("dilation")?,
        padding: pair("padding")?,
        stride: pair("stride")?,
    };
    Ok(match args.op {
        Op::Unfold => fold::unfold(args.input()?, &patches)?,
        _ => fold::fold(args.input()?, pair("output_size")?, &patches)?,
    }
    .into())
}

fn grid(args: &Args<'_>) -> Result<Value> {
    let tensors = args.tensors("tensors")?;
    if args.op == Op::Meshgrid {
        let xy = args.text("indexing") == Some("xy");
        return Ok(Value::tensors(movement::meshgrid(&tensors, xy)?));
    }
    if let [only] = tensors.as_slice() {
        return Ok(only.clone().into());
    }
    let columns = movement::meshgrid(&tensors, false)?;
    let columns = columns.iter().map(|column| column.reshape(&[-1])).collect::<Result<Vec<_>>>()?;
    Ok(movement::stack(&columns, 1)?.into())
}

fn complex(args: &Args<'_>) -> Result<Value> {
    let (real, imaginary) = if args.op == Op::Complex {
        (args.tensor("real")?.clone(), args.tensor("imag")?.clone())
    } else {
        let (size, angle) = (args.tensor("abs")?, args.tensor("angle")?);
        let part = |unary: Unary| -> Result<Tensor> {
            pointwise::mul(&size.into(), &pointwise::unary(unary, angle)?.into())
        };
        (part(Unary::Cos)?, part(Unary::Sin)?)
    };
    ensure!(
        real.dtype() == imaginary.dtype()
            && matches!(real.dtype(), DType::Float32 | DType::Float64),
        DType,
        "Expected both inputs to be Float or Double tensors of one type but got {} and {}",
        real.dtype(),
        imaginary.dtype()
    );
    let shape =
        crate::native::tensor::layout::broadcast_shapes(&[real.shape(), imaginary.shape()])?;
    let result = Tensor::zeros(&shape, real.dtype().complex())?;
    result.complex_part(0)?.copy_from(&real)?;
    result.complex_part(1)?.copy_from(&imaginary)?;
    Ok(result.into())
}
