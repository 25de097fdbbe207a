//! Normalisations, softmax, dropout.

use super::args::Args;
use super::movement::suggested;
use super::pointwise::elementwise;
use super::problem::{Inferred, Problem};
use super::promote::{Operand, message_name, result_type};
use super::strides;
use super::value::{TensorType, Value};
use crate::dtype::Kind;
use crate::ops::Op;

/// `layer_norm`, `rms_norm`: over the trailing dimensions.
pub(super) fn over_trailing(args: &Args) -> Inferred<Value> {
    let input = args.tensor("input")?;
    let normalized = args.ints("normalized_shape")?;
    let fits = !normalized.is_empty()
        && normalized.len() <= input.rank()
        && input.shape[input.rank() - normalized.len()..]
            .iter()
            .zip(&normalized)
            .all(|(own, given)| args.scope.same(own, given));
    if !fits {
        return Err(Problem::invalid(format!(
            "Given normalized_shape={}, expected input with shape [*, {}], but got input of size{}",
            strides::describe(&normalized),
            strides::describe(&normalized).trim_matches(['[', ']']),
            strides::describe(&input.shape)
        )));
    }
    for name in ["weight", "bias"] {
        if let Some(tensor) = args.optional_tensor(name)?
            && tensor.sizes().as_slice()
                != normalized.iter().map(|dim| dim.size).collect::<Vec<_>>().as_slice()
        {
            return Err(Problem::invalid(format!(
                "Expected {name} to be of same shape as normalized_shape, but got {name} of shape {} and normalized_shape = {}",
                strides::describe(&tensor.shape),
                strides::describe(&normalized)
            )));
        }
    }
    if input.dtype.kind() < Kind::Float {
        return Err(Problem::invalid(format!(
            "{} not implemented for '{}'",
            args.op().name(),
            message_name(input.dtype)
        )));
    }
    Ok(TensorType::contiguous(input.dtype, input.shape.clone()).into())
}

/// `batch_norm`, `instance_norm`, `group_norm`: per channel.
pub(super) fn over_channels(args: &Args) -> Inferred<Value> {
    let input = args.tensor("input")?;
    let Some(channels) = input.shape.get(1) else {
        return Err(Problem::invalid(format!(
            "Expected at least 2 dimensions for input tensor but received {}",
            input.rank()
        )));
    };
    for name in ["running_mean", "running_var", "weight", "bias"] {
        if let Some(tensor) = args.optional_tensor(name)? {
            let count = strides::product(&tensor.shape)?;
            if !args.scope.same(&count, channels) {
                return Err(Problem::invalid(format!(
                    "{name} should contain {} elements not {}",
                    channels.size, count.size
                )));
            }
        }
    }
    match args.op() {
        Op::GroupNorm => {
            let groups = args.int("num_groups")?.size;
            if groups < 1 || channels.size % groups != 0 {
                return Err(Problem::invalid(format!(
                    "Expected number of channels in input to be divisible by num_groups, but got input of shape {} and num_groups={groups}",
                    strides::describe(&input.shape)
                )));
            }
            Ok(TensorType::contiguous(input.dtype, input.shape.clone()).into())
        }
        Op::InstanceNorm => Ok(TensorType::contiguous(input.dtype, input.shape.clone()).into()),
        _ => Ok(suggested(input, input.shape.clone()).into()),
    }
}

pub(super) fn scaled(args: &Args) -> Inferred<Value> {
    match args.op() {
        Op::LocalResponseNorm => {
            let input = args.tensor("input")?;
            if input.rank() < 3 {
                return Err(Problem::invalid(format!(
                    "Expected 3D or higher dimensionality input (got {} dimensions)",
                    input.rank()
                )));
            }
            Ok(elementwise(args, input.dtype, &[input])?.into())
        }
        Op::Normalize => {
            let input = args.tensor("input")?;
            args.axes("dim", input.rank())?;
            if input.dtype.kind() < Kind::Float {
                return Err(Problem::invalid("normalize expects a floating point tensor"));
            }
            Ok(elementwise(args, input.dtype, &[input])?.into())
        }
        _ => {
            let (v, g) = (args.tensor("v")?, args.tensor("g")?);
            let dtype = result_type(&[Operand::Tensor(v), Operand::Tensor(g)]);
            Ok(elementwise(args, dtype, &[v, g])?.into())
        }
    }
}

pub(super) fn softmax(args: &Args) -> Inferred<Value> {
    let input = args.tensor("input")?;
    if let Some(axis) = args.optional_int("dim")? {
        super::args::wrap_axis(axis.size, input.rank())?;
    }
    let dtype = args.dtype("dtype")?.unwrap_or(input.dtype);
    if dtype.kind() < Kind::Float {
        return Err(Problem::invalid(format!(
            "softmax not implemented for '{}'",
            message_name(dtype)
        )));
    }
    Ok(TensorType::contiguous(dtype, input.shape.clone()).into())
}

pub(super) fn glu(args: &Args) -> Inferred<Value> {
    let input = args.tensor("input")?;
    let axis = args.axis("dim", input.rank())?;
    let mut shape = input.shape.clone();
    let Some(dim) = shape.get_mut(axis) else {
        return Err(Problem::invalid("glu does not support 0-dimensional tensors"));
    };
    if dim.size % 2 != 0 {
        return Err(Problem::invalid(format!(
            "Halving dimension must be even, but dimension {axis} is size {}",
            dim.size
        )));
    }
    *dim = dim.divided(2)?;
    // A loop over both halves, which are views of the argument.
    let half = input.viewed(shape, input.strides.clone());
    Ok(elementwise(args, input.dtype, &[&half, &half])?.into())
}

/// Outside training, dropout is the identity.
pub(super) fn dropout(args: &Args) -> Inferred<Value> {
    let input = args.tensor("input")?;
    if let Some(p) = args.number("p")?
        && !(0.0..=1.0).contains(&p)
    {
        return Err(Problem::invalid(format!(
            "dropout probability has to be between 0 and 1, but got {p}"
        )));
    }
    let training = args.flag(if args.bound.has("training") { "training" } else { "train" })?;
    if !training || args.number("p")? == Some(0.0) && args.op() != Op::Dropout {
        return Ok(input.clone().into());
    }
    Ok(elementwise(args, input.dtype, &[input])?.into())
}
