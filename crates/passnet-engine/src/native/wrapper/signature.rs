//! What a plan is made for: the arguments of a wrapper without their values.

use super::super::error::{Result, err};
use super::super::tensor::{Scalar, Tensor};
use crate::engine::Value;
use passnet_kernel::Const;
use passnet_kernel::plan::{HostArg, TensorSpec};
use std::borrow::Cow;

pub(super) fn tensor_argument<'a>(
    arguments: &'a [Cow<'_, Value>],
    index: usize,
) -> Result<&'a Tensor> {
    match arguments.get(index).map(Cow::as_ref) {
        Some(Value::Tensor(tensor)) => Ok(tensor),
        _ => Err(err!(Plan, "argument {index} of the wrapper is no tensor")),
    }
}

pub(super) fn signature_of(arguments: &[Cow<'_, Value>]) -> Result<Vec<HostArg>> {
    let described = arguments.iter().enumerate().map(|(index, value)| {
        host_argument(value)
            .ok_or_else(|| err!(Plan, "argument {index} of the wrapper is a {}", value.type_name()))
    });
    described.collect()
}

fn host_argument(value: &Value) -> Option<HostArg> {
    if let Value::Tensor(tensor) = value {
        let signed = |sizes: &[usize]| sizes.iter().map(|size| *size as i64).collect();
        return Some(HostArg::Tensor(TensorSpec {
            shape: signed(tensor.shape()),
            stride: signed(tensor.strides()),
            dtype: tensor.dtype(),
            device: TensorSpec::DEVICE,
            aligned: is_aligned(tensor),
        }));
    }
    constant(value).map(HostArg::Const)
}

/// Whether a tensor begins at an address that 16 divides, as its memory does.
fn is_aligned(tensor: &Tensor) -> bool {
    (tensor.storage_offset() * tensor.dtype().size()).is_multiple_of(16)
}

fn constant(value: &Value) -> Option<Const> {
    Some(match value {
        Value::None => Const::None,
        Value::Number(Scalar::Bool(value)) => Const::Bool(*value),
        Value::Number(Scalar::Int(value)) => Const::Int(*value),
        Value::Number(Scalar::Float(value)) => Const::Float(*value),
        Value::Text(text) => Const::Str(text.to_string()),
        // A graph's device is the one that wrappers are told of.
        Value::Device => Const::Str(TensorSpec::DEVICE.to_string()),
        Value::Sequence(items) => Const::Tuple(items.iter().map(constant).collect::<Option<_>>()?),
        _ => return None,
    })
}

/// Whether a plan made for `signature` serves these arguments.
pub(super) fn fits(signature: &[HostArg], arguments: &[Cow<'_, Value>]) -> bool {
    let equal = |sizes: &[usize], known: &[i64]| {
        sizes.len() == known.len()
            && sizes.iter().zip(known).all(|(size, known)| *size as i64 == *known)
    };
    signature.len() == arguments.len()
        && signature.iter().zip(arguments).all(|(known, value)| match (known, value.as_ref()) {
            (HostArg::Tensor(spec), Value::Tensor(tensor)) => {
                spec.dtype == tensor.dtype()
                    && spec.aligned == is_aligned(tensor)
                    && equal(tensor.shape(), &spec.shape)
                    && equal(tensor.strides(), &spec.stride)
            }
            (HostArg::Const(Const::Str(known)), Value::Text(text)) => **text == **known,
            (HostArg::Const(known), value) => constant(value).as_ref() == Some(known),
            _ => false,
        })
}
