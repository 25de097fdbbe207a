//! Fourier transforms.

use super::{Args, OpFunction};
use crate::engine::Value;
use crate::native::error::{Result, bail, ensure};
use crate::native::ops::fft::{self, Normalization};
use crate::native::ops::movement::{self, PadMode};
use crate::native::ops::stft::Steps;
use crate::native::tensor::layout::Dims;
use crate::native::tensor::{Scalar, Tensor};
use passnet_graph::ops::Op;

pub(super) fn function_of(op: Op) -> Option<OpFunction> {
    Some(match op {
        Op::Fft | Op::Ifft | Op::Rfft | Op::Irfft => one_dimension,
        Op::Fftn | Op::Ifftn | Op::Fft2 | Op::Ifft2 => fftn,
        Op::Rfft2 | Op::Irfft2 | Op::Rfftn | Op::Irfftn => real_fftn,
        Op::Fftshift | Op::Ifftshift => shift,
        Op::Stft => stft,
        Op::Istft => istft,
        _ => return None,
    })
}

fn one_dimension(args: &Args<'_>) -> Result<Value> {
    let (input, dim) = (args.input()?, args.int("dim")?);
    let normalization = Normalization::from_name(args.text("norm"))?;
    let length = match args.optional_int("n")? {
        Some(_) => Some(args.size("n")?),
        None => None,
    };
    Ok(match args.op {
        Op::Rfft => fft::rfft(input, length, dim, normalization)?,
        Op::Irfft => fft::irfft(input, length, dim, normalization)?,
        op => {
            let sizes = length.map(|n| [n]);
            let sizes = sizes.as_ref().map(|sizes| sizes.as_slice());
            fft::fftn(input, sizes, Some(&[dim]), normalization, op == Op::Ifft)?
        }
    }
    .into())
}

fn sizes(args: &Args<'_>) -> Result<Option<Dims>> {
    match args.optional_ints("s")? {
        Some(_) => args.sizes("s").map(Some),
        None => Ok(None),
    }
}

fn fftn(args: &Args<'_>) -> Result<Value> {
    let normalization = Normalization::from_name(args.text("norm"))?;
    let (sizes, dims) = (sizes(args)?, args.optional_ints("dim")?);
    let inverse = matches!(args.op, Op::Ifftn | Op::Ifft2);
    Ok(fft::fftn(args.input()?, sizes.as_deref(), dims.as_deref(), normalization, inverse)?.into())
}

/// The real transform runs over the last dimension, complex ones over the others.
fn real_fftn(args: &Args<'_>) -> Result<Value> {
    let input = args.input()?;
    let normalization = Normalization::from_name(args.text("norm"))?;
    let (sizes, dims) = (sizes(args)?, args.optional_ints("dim")?);
    let dims: Vec<i64> = match (&dims, &sizes) {
        (Some(dims), _) => dims.to_vec(),
        (None, Some(sizes)) => (1..=sizes.len() as i64).rev().map(|d| -d).collect(),
        (None, None) => (0..input.ndim() as i64).collect(),
    };
    ensure!(
        sizes.as_ref().is_none_or(|sizes| sizes.len() == dims.len()),
        Value,
        "When given, dim and shape arguments must have the same length"
    );
    let Some((last, others)) = dims.split_last() else {
        bail!(Value, "a transform of a real signal needs at least one dimension");
    };
    let last_size = sizes.as_ref().and_then(|sizes| sizes.last().copied());
    let other_sizes = sizes.as_ref().map(|sizes| &sizes[..others.len()]);
    let over_others = |input: &Tensor, inverse: bool| match others.is_empty() {
        true => Ok(input.clone()),
        false => fft::fftn(input, other_sizes, Some(others), normalization, inverse),
    };
    Ok(match args.op {
        Op::Rfft2 | Op::Rfftn => {
            over_others(&fft::rfft(input, last_size, *last, normalization)?, false)?
        }
        _ => fft::irfft(&over_others(input, true)?, last_size, *last, normalization)?,
    }
    .into())
}

/// The zero of frequencies moves to the middle, or back.
fn shift(args: &Args<'_>) -> Result<Value> {
    let input = args.input()?;
    let dims: Vec<i64> = match args.optional_ints("dim")? {
        Some(dims) => dims.to_vec(),
        None => (0..input.ndim() as i64).collect(),
    };
    let mut by = Vec::with_capacity(dims.len());
    for dim in &dims {
        let size = input.size(*dim)?;
        by.push(if args.op == Op::Fftshift { size / 2 } else { size.div_ceil(2) } as i64);
    }
    match dims.is_empty() {
        true => Ok(input.copy()?.into()),
        false => Ok(movement::roll(input, &by, &dims)?.into()),
    }
}

fn steps(args: &Args<'_>) -> Result<Steps> {
    let length = args.size("n_fft")?;
    let or = |name: &str, default: usize| match args.optional_int(name)? {
        Some(_) => args.size(name),
        None => Ok(default),
    };
    Ok(Steps {
        length,
        hop: or("hop_length", length / 4)?,
        window_length: or("win_length", length)?,
        window: args.optional_tensor("window")?.cloned(),
        center: args.flag("center")?,
        normalization: match args.flag("normalized")? {
            true => Normalization::Ortho,
            false => Normalization::Backward,
        },
        one_sided: match args.value("onesided") {
            Value::None => None,
            _ => Some(args.flag("onesided")?),
        },
    })
}

fn stft(args: &Args<'_>) -> Result<Value> {
    let input = args.input()?;
    if args.flag("align_to_window")? {
        bail!(Unsupported, "`align_to_window` of stft is not supported");
    }
    let mode = match args.text("pad_mode") {
        Some("reflect") => PadMode::Reflect,
        Some("constant") => PadMode::Constant(Scalar::Int(0)),
        Some("replicate") => PadMode::Replicate,
        Some("circular") => PadMode::Circular,
        other => bail!(Value, "Unrecognised padding mode {}", other.unwrap_or("None")),
    };
    let result = steps(args)?.stft(input, mode)?;
    if args.flag("return_complex")? {
        return Ok(result.into());
    }
    ensure!(
        input.dtype().is_complex() || !matches!(args.value("return_complex"), Value::None),
        Value,
        "stft requires the return_complex parameter be given for real inputs"
    );
    Ok(result.view_as_real()?.into())
}

fn istft(args: &Args<'_>) -> Result<Value> {
    let length = match args.optional_int("length")? {
        Some(_) => Some(args.size("length")?),
        None => None,
    };
    Ok(steps(args)?.istft(args.input()?, length, args.flag("return_complex")?)?.into())
}
