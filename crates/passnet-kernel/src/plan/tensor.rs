//! Tensors as the wrapper sees them: shape, stride, dtype, device, and which buffer they look into.

use super::View;
use passnet_graph::view::layout;
use passnet_graph::{DType, Device, DeviceKind};
use serde::{Deserialize, Serialize};

/// An abstract tensor argument.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TensorSpec {
    /// Its sizes.
    pub shape: Vec<i64>,
    /// Its strides, in elements.
    pub stride: Vec<i64>,
    /// The type of its elements.
    pub dtype: DType,
    /// Where the wrapper believes it to be.
    pub device: Device,
    /// Whether it begins at an address that 16 divides.
    #[serde(default)]
    pub aligned: bool,
}

impl TensorSpec {
    /// Where a wrapper's arguments appear to be: passes are written for a GPU, wherever their kernels run.
    pub const DEVICE: Device = Device { kind: DeviceKind::Cuda, index: Some(0) };

    /// A tensor in memory of its own.
    pub fn contiguous(shape: &[i64], dtype: DType, device: Device) -> TensorSpec {
        let stride = layout::contiguous(shape).into_vec();
        TensorSpec { shape: shape.to_vec(), stride, dtype, device, aligned: true }
    }

    /// Elements of storage the tensor reaches, if it fits in memory at all.
    pub fn storage_elements(&self) -> Option<u64> {
        extent(&self.shape, &self.stride)
    }
}

/// Elements from the first to one past the last; `None` for negative sizes, negative strides or overflow.
pub(super) fn extent(shape: &[i64], stride: &[i64]) -> Option<u64> {
    if shape.len() != stride.len() || shape.iter().any(|&s| s < 0) {
        return None;
    }
    if shape.contains(&0) {
        return Some(0);
    }
    let mut last = 0i64;
    for (&size, &step) in shape.iter().zip(stride) {
        if step < 0 {
            return None;
        }
        last = last.checked_add((size - 1).checked_mul(step)?)?;
    }
    u64::try_from(last.checked_add(1)?).ok()
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Tensor {
    pub(super) buffer: usize,
    pub(super) offset: i64,
    pub(super) shape: Vec<i64>,
    pub(super) stride: Vec<i64>,
    pub(super) dtype: DType,
    pub(super) device: Device,
}

impl Tensor {
    pub(super) fn numel(&self) -> i64 {
        self.shape.iter().fold(1i64, |n, &d| n.saturating_mul(d))
    }

    pub(super) fn view(&self) -> View {
        View {
            buffer: self.buffer,
            offset: self.offset,
            shape: self.shape.clone(),
            stride: self.stride.clone(),
            dtype: self.dtype,
        }
    }

    pub(super) fn is_contiguous(&self) -> bool {
        layout::is_contiguous(&self.shape, &self.stride)
    }

    /// The strides of `empty_like`, of `clone` and of a conversion.
    pub(super) fn like_strides(&self) -> Vec<i64> {
        layout::like(&self.shape, &self.stride).into_vec()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tensor(shape: &[i64], stride: &[i64]) -> Tensor {
        Tensor {
            buffer: 0,
            offset: 0,
            shape: shape.to_vec(),
            stride: stride.to_vec(),
            dtype: DType::Float32,
            device: Device::CPU,
        }
    }

    /// Strides as torch gives them for the same calls on the same tensors.
    #[test]
    fn new_tensors_follow_the_layout_of_old_ones() {
        for (shape, stride, like) in [
            (&[3, 5][..], &[1, 3][..], &[1, 3][..]),
            (&[3, 5], &[20, 2], &[5, 1]),
            (&[3, 5], &[2, 20], &[1, 3]),
            (&[3, 5, 4], &[0, 1, 5], &[20, 1, 5]),
            (&[3, 5], &[0, 1], &[5, 1]),
            (&[3, 5], &[1, 0], &[5, 1]),
            (&[2, 1, 3], &[3, 99, 1], &[3, 99, 1]),
            (&[0, 3], &[7, 7], &[7, 7]),
        ] {
            assert_eq!(tensor(shape, stride).like_strides(), like, "{shape:?} {stride:?}");
        }
    }

    #[test]
    fn sizes_of_one_do_not_break_contiguity() {
        assert!(tensor(&[3, 1, 5], &[5, 99, 1]).is_contiguous());
        assert!(!tensor(&[3, 5], &[1, 3]).is_contiguous());
    }
}
