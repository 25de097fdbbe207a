//! Padding.

use crate::native::error::{Result, ensure};
use crate::native::ops::indexing::index_select;
use crate::native::tensor::layout::{Dims, suggests_channels_last};
use crate::native::tensor::{Scalar, Tensor};

/// What `torch.nn.functional.pad` puts around a tensor.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum PadMode {
    /// One number.
    Constant(Scalar),
    /// What is inside, mirrored, without the edge.
    Reflect,
    /// The edge.
    Replicate,
    /// What is at the other end.
    Circular,
}

/// `torch.nn.functional.pad`: amounts in pairs from the last dimension back; negative ones cut.
pub fn pad(input: &Tensor, amounts: &[i64], mode: PadMode) -> Result<Tensor> {
    ensure!(amounts.len().is_multiple_of(2), Value, "Padding length must be divisible by 2");
    ensure!(
        amounts.len() / 2 <= input.ndim(),
        Value,
        "Padding length should be less than or equal to two times the input dimension but got padding length {} and input of dimension {}",
        amounts.len(),
        input.ndim()
    );
    let pairs: Vec<(usize, i64, i64)> = amounts
        .chunks(2)
        .enumerate()
        .map(|(i, pair)| (input.ndim() - 1 - i, pair[0], pair[1]))
        .collect();
    match mode {
        PadMode::Constant(value) => constant(input, &pairs, value),
        _ => {
            let mut result = input.clone();
            for (d, before, after) in pairs {
                let positions = sources(result.shape()[d], before, after, mode)?;
                let positions = Tensor::from_slice(&positions, &[positions.len()])?;
                result = index_select(&result, d as i64, &positions)?;
            }
            Ok(result)
        }
    }
}

fn constant(input: &Tensor, pairs: &[(usize, i64, i64)], value: Scalar) -> Result<Tensor> {
    let mut shape: Dims = input.shape().into();
    let mut source = input.clone();
    for &(d, before, after) in pairs {
        let size = (shape[d] as i64).saturating_add(before).saturating_add(after);
        ensure!(
            size >= 0,
            Shape,
            "The input size {}, plus negative padding {before} and {after} resulted in a negative output size, which is invalid. Check dimension {d} of your input.",
            shape[d]
        );
        let end = shape[d] as i64 + after.min(0);
        source = source.slice(d as i64, Some((-before).max(0)), Some(end.max(0)), 1)?;
        shape[d] = size as usize;
    }
    // Torch keeps the order of images whose channels come last, and no other.
    let order = match suggests_channels_last(input.shape(), input.strides()) {
        true => input.memory_order(),
        false => (0..input.ndim()).collect(),
    };
    let ordered: Dims = order.iter().map(|&d| shape[d]).collect();
    let result = Tensor::from_ordered(Tensor::full(&ordered, value, input.dtype())?, &order);
    let mut inside = result.clone();
    for &(d, before, _) in pairs {
        inside = inside.narrow(d as i64, before.max(0), source.shape()[d])?;
    }
    inside.copy_from(&source)?;
    Ok(result)
}

/// Where each element along a padded dimension comes from.
fn sources(size: usize, before: i64, after: i64, mode: PadMode) -> Result<Vec<i64>> {
    let length = size as i64;
    ensure!(length > 0, Shape, "Expected a non-empty dimension to pad");
    match mode {
        PadMode::Reflect => ensure!(
            before < length && after < length,
            Value,
            "Padding size should be less than the corresponding input dimension, but got: padding ({before}, {after}) at dimension of size {length}"
        ),
        PadMode::Circular => ensure!(
            before <= length && after <= length,
            Value,
            "Padding value causes wrapping around more than once."
        ),
        _ => {}
    }
    let total = length.saturating_add(before).saturating_add(after);
    ensure!(total >= 0, Shape, "padding leaves a negative size");
    crate::native::tensor::layout::numel(&[total as usize, 8])?;
    Ok((-before..length + after)
        .map(|i| match mode {
            PadMode::Reflect if i < 0 => -i,
            PadMode::Reflect if i >= length => 2 * (length - 1) - i,
            PadMode::Circular => i.rem_euclid(length),
            _ => i.clamp(0, length - 1),
        })
        .collect())
}
