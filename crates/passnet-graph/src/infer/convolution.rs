//! Convolutions and their transposes.

use super::args::Args;
use super::dim::Dim;
use super::problem::{Inferred, Problem};
use super::promote::message_name;
use super::strides;
use super::value::{Shape, TensorType, Value};
use crate::ops::Op;
use smallvec::SmallVec;

pub(super) fn convolution(args: &Args) -> Inferred<Value> {
    let (spatial, transposed) = match args.op() {
        Op::Conv1d => (1, false),
        Op::Conv2d => (2, false),
        Op::Conv3d => (3, false),
        Op::ConvTranspose1d => (1, true),
        Op::ConvTranspose2d => (2, true),
        _ => (3, true),
    };
    let (input, weight) = (args.tensor("input")?, args.tensor("weight")?);
    if weight.rank() != spatial + 2 {
        return Err(Problem::invalid(format!(
            "Expected {}-dimensional weight, but got weight of size {}",
            spatial + 2,
            strides::describe(&weight.shape)
        )));
    }
    let batched = match input.rank() {
        rank if rank == spatial + 2 => true,
        rank if rank == spatial + 1 => false,
        rank => {
            return Err(Problem::invalid(format!(
                "Expected {}D (unbatched) or {}D (batched) input, but got input of rank {rank}",
                spatial + 1,
                spatial + 2
            )));
        }
    };
    check_dtypes(args, input, weight)?;
    let groups = args.int("groups")?;
    let channels_at = usize::from(batched);
    let channels = &input.shape[channels_at];
    let (expected, out_channels) = if transposed {
        (weight.shape[0].clone(), weight.shape[1].mul(&groups)?)
    } else {
        (weight.shape[1].mul(&groups)?, weight.shape[0].clone())
    };
    if groups.size < 1 || !args.scope.same(channels, &expected) {
        return Err(Problem::invalid(format!(
            "Given {}groups={}, weight of size {}, expected input{} to have {} channels, but got {} channels instead",
            if transposed { "transposed=1, " } else { "" },
            groups.size,
            strides::describe(&weight.shape),
            strides::describe(&input.shape),
            expected.size,
            channels.size
        )));
    }
    if out_channels.size % groups.size != 0 {
        return Err(Problem::invalid(format!(
            "Given groups={}, expected weight to be divisible by it at dimension 0, but got weight of size {}",
            groups.size,
            strides::describe(&weight.shape)
        )));
    }
    if let Some(bias) = args.optional_tensor("bias")?
        && (bias.rank() != 1 || !args.scope.same(&bias.shape[0], &out_channels))
    {
        return Err(Problem::invalid(format!(
            "Given weight of size {}, expected bias to be 1-dimensional with {} elements, but got bias of size {} instead",
            strides::describe(&weight.shape),
            out_channels.size,
            strides::describe(&bias.shape)
        )));
    }
    let mut shape: Shape = input.shape[..channels_at].into();
    shape.push(out_channels);
    let window = Window::read(args, spatial, transposed, &weight.shape[2..])?;
    for axis in 0..spatial {
        shape.push(window.output(&input.shape[channels_at + 1 + axis], axis)?);
    }
    Ok(TensorType::contiguous(input.dtype, shape).into())
}

fn check_dtypes(args: &Args, input: &TensorType, weight: &TensorType) -> Inferred<()> {
    let bias = args.optional_tensor("bias")?;
    let odd = [Some(weight), bias].into_iter().flatten().find(|t| t.dtype != input.dtype);
    match odd {
        None => Ok(()),
        Some(tensor) => Err(Problem::invalid(format!(
            "Input type ({}) and weight or bias type ({}) should be the same",
            message_name(input.dtype),
            message_name(tensor.dtype)
        ))),
    }
}

struct Window<'a> {
    kernel: &'a [Dim],
    stride: Shape,
    dilation: Shape,
    padding: Padding,
    /// Of a transposed convolution.
    output_padding: Option<Shape>,
}

enum Padding {
    /// Both sides of each dimension.
    Each(Shape),
    /// As much as keeps the size.
    Same,
}

impl<'a> Window<'a> {
    fn read(args: &Args, spatial: usize, transposed: bool, kernel: &'a [Dim]) -> Inferred<Self> {
        let stride = args.spatial("stride", spatial)?;
        let dilation = args.spatial("dilation", spatial)?;
        let padding = match args.text("padding")?.as_deref() {
            None => Padding::Each(args.spatial("padding", spatial)?),
            Some("valid") => Padding::Each(SmallVec::from_elem(Dim::fixed(0), spatial)),
            Some("same") => {
                if stride.iter().any(|stride| stride.size != 1) {
                    return Err(Problem::invalid(
                        "padding='same' is not supported for strided convolutions",
                    ));
                }
                Padding::Same
            }
            Some(other) => {
                return Err(Problem::invalid(format!("Invalid padding string: '{other}'")));
            }
        };
        if stride.iter().chain(&dilation).any(|value| value.size < 1) {
            return Err(Problem::invalid("non-positive stride or dilation is not supported"));
        }
        if let Padding::Each(sides) = &padding
            && sides.iter().any(|side| side.size < 0)
        {
            return Err(Problem::invalid("negative padding is not supported"));
        }
        let output_padding =
            if transposed { Some(args.spatial("output_padding", spatial)?) } else { None };
        Ok(Window { kernel, stride, dilation, padding, output_padding })
    }

    fn output(&self, size: &Dim, axis: usize) -> Inferred<Dim> {
        let reach = self.kernel[axis].offset(-1)?.mul(&self.dilation[axis])?;
        let padding = match &self.padding {
            Padding::Same => return Ok(size.clone()),
            Padding::Each(sides) => sides[axis].scaled(2)?,
        };
        if let Some(extra) = &self.output_padding {
            let spread = size.offset(-1)?.mul(&self.stride[axis])?;
            let output = spread.sub(&padding)?.add(&reach)?.add(&extra[axis])?.offset(1)?;
            if output.size < 1 {
                return Err(Problem::invalid("the calculated output size is too small"));
            }
            return Ok(output);
        }
        let free = size.add(&padding)?.sub(&reach)?.offset(-1)?;
        if free.size < 0 {
            return Err(Problem::invalid(format!(
                "Calculated padded input size per channel: ({}). Kernel size: ({}). Kernel size can't be greater than actual input size",
                size.size.saturating_add(padding.size),
                self.kernel[axis].size
            )));
        }
        free.floor_div(&self.stride[axis])?.offset(1)
    }
}
