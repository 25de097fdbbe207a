//! Tensors as the wrapper sees them: shape, stride, dtype, device, and which buffer they look into.

use super::View;
use passnet_graph::{DType, Device, DeviceKind};
use serde::{Deserialize, Serialize};

/// An abstract tensor argument.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TensorSpec {
    pub shape: Vec<i64>,
    pub stride: Vec<i64>,
    pub dtype: DType,
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
        let stride = contiguous_strides(shape);
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

pub(super) fn contiguous_strides(shape: &[i64]) -> Vec<i64> {
    let mut stride = vec![1i64; shape.len()];
    for i in (0..shape.len().saturating_sub(1)).rev() {
        stride[i] = stride[i + 1].saturating_mul(shape[i + 1].max(1));
    }
    stride
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

    /// torch's rule: strides of dimensions of size one do not count.
    pub(super) fn is_contiguous(&self) -> bool {
        if self.shape.contains(&0) {
            return true;
        }
        let expected = contiguous_strides(&self.shape);
        (0..self.shape.len()).all(|d| self.shape[d] == 1 || self.stride[d] == expected[d])
    }

    /// The tensor under another shape without moving data, if that is possible.
    pub(super) fn viewed(&self, shape: &[i64]) -> Option<Tensor> {
        if self.numel() == 0 {
            return Some(Tensor {
                shape: shape.to_vec(),
                stride: contiguous_strides(shape),
                ..self.clone()
            });
        }
        // Group old dimensions into runs that are contiguous among themselves; each run may be cut anew.
        let old: Vec<(i64, i64)> = self
            .shape
            .iter()
            .copied()
            .zip(self.stride.iter().copied())
            .filter(|d| d.0 != 1)
            .collect();
        let mut stride = vec![0i64; shape.len()];
        let mut new = shape.len();
        let mut index = old.len();
        while index > 0 {
            let (mut size, base) = old[index - 1];
            index -= 1;
            while index > 0 && old[index - 1].1 == old[index].1.checked_mul(old[index].0)? {
                size = size.checked_mul(old[index - 1].0)?;
                index -= 1;
            }
            let mut covered = 1i64;
            while covered < size && new > 0 {
                new -= 1;
                stride[new] = base.checked_mul(covered)?;
                covered = covered.checked_mul(shape[new])?;
            }
            if covered != size {
                return None;
            }
        }
        while new > 0 {
            new -= 1;
            if shape[new] != 1 {
                return None;
            }
            stride[new] = if new + 1 < shape.len() {
                stride[new + 1].saturating_mul(shape[new + 1].max(1))
            } else {
                1
            };
        }
        Some(Tensor { shape: shape.to_vec(), stride, ..self.clone() })
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

    #[test]
    fn views_follow_torch() {
        // Strides as torch 2.11 gives them for the same calls on the same tensors.
        let t = tensor(&[4, 6], &[6, 1]);
        assert_eq!(t.viewed(&[2, 2, 6]).map(|v| v.stride), Some(vec![12, 6, 1]));
        assert_eq!(t.viewed(&[24]).map(|v| v.stride), Some(vec![1]));
        assert_eq!(t.viewed(&[1, 24, 1]).map(|v| v.stride), Some(vec![24, 1, 1]));
        let transposed = tensor(&[6, 4], &[1, 6]);
        assert_eq!(transposed.viewed(&[24]), None);
        assert_eq!(transposed.viewed(&[2, 3, 4]).map(|v| v.stride), Some(vec![3, 1, 6]));
        let expanded = tensor(&[3, 5], &[0, 1]);
        assert_eq!(expanded.viewed(&[15]), None);
    }

    #[test]
    fn sizes_of_one_do_not_break_contiguity() {
        assert!(tensor(&[3, 1, 5], &[5, 99, 1]).is_contiguous());
        assert!(!tensor(&[3, 5], &[1, 3]).is_contiguous());
    }
}
