//! Fourier transforms.

use super::{Args, OpFunction};
use crate::engine::Value;
use crate::native::error::{Result, bail};
use crate::native::ops::fft::{self, Normalization};
use passnet_graph::ops::Op;

pub(super) fn function_of(op: Op) -> Option<OpFunction> {
    Some(match op {
        Op::Fft | Op::Ifft | Op::Rfft | Op::Irfft => one_dimension,
        Op::Fftn => fftn,
        Op::Rfft2 | Op::Irfft2 => two_dimensions,
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

fn fftn(args: &Args<'_>) -> Result<Value> {
    let normalization = Normalization::from_name(args.text("norm"))?;
    let sizes = match args.optional_ints("s")? {
        Some(_) => Some(args.sizes("s")?),
        None => None,
    };
    let dims = args.optional_ints("dim")?;
    Ok(fft::fftn(args.input()?, sizes.as_deref(), dims.as_deref(), normalization, false)?.into())
}

/// The real transform runs over the last dimension, a complex one over the other.
fn two_dimensions(args: &Args<'_>) -> Result<Value> {
    let (input, dims) = (args.input()?, args.ints("dim")?);
    let normalization = Normalization::from_name(args.text("norm"))?;
    let [first, last] = dims.as_slice() else {
        bail!(Value, "expected two dimensions, got {}", dims.len());
    };
    let sizes = match args.optional_ints("s")? {
        Some(_) => Some(args.sizes("s")?),
        None => None,
    };
    let (first_size, last_size) = match sizes.as_deref() {
        Some([first, last]) => (Some(*first), Some(*last)),
        Some(other) => bail!(Value, "expected two sizes, got {}", other.len()),
        None => (None, None),
    };
    let first_sizes = first_size.map(|n| [n]);
    let first_sizes = first_sizes.as_ref().map(|sizes| sizes.as_slice());
    Ok(match args.op {
        Op::Rfft2 => {
            let half = fft::rfft(input, last_size, *last, normalization)?;
            fft::fftn(&half, first_sizes, Some(&[*first]), normalization, false)?
        }
        _ => {
            let rows = fft::fftn(input, first_sizes, Some(&[*first]), normalization, true)?;
            fft::irfft(&rows, last_size, *last, normalization)?
        }
    }
    .into())
}
