//! The same bytes read as another type.

use super::Tensor;
use crate::native::error::{Result, ensure};
use passnet_graph::DType;

impl Tensor {
    /// `x.view(dtype)`: the last dimension grows or shrinks with the width of the elements.
    pub fn view_dtype(&self, dtype: DType) -> Result<Tensor> {
        let (own, other) = (self.dtype.size(), dtype.size());
        if own == other {
            return Ok(Tensor { dtype, ..self.clone() });
        }
        let what = || format!("to view {} as {dtype} (different element sizes)", self.dtype);
        let Some(last) = self.ndim().checked_sub(1) else {
            crate::native::error::bail!(Shape, "self.dim() cannot be 0 {}", what());
        };
        ensure!(
            self.strides[last] == 1,
            Shape,
            "self.stride(-1) must be 1 {}, but got {}",
            what(),
            self.strides[last]
        );
        let mut view = Tensor { dtype, ..self.clone() };
        if own > other {
            let ratio = own / other;
            view.shape[last] *= ratio;
            view.offset *= ratio;
            view.strides[..last].iter_mut().for_each(|stride| *stride *= ratio);
            return Ok(view);
        }
        let ratio = other / own;
        ensure!(
            self.shape[last].is_multiple_of(ratio),
            Shape,
            "self.size(-1) must be divisible by {ratio} {}, but got {}",
            what(),
            self.shape[last]
        );
        ensure!(
            self.offset.is_multiple_of(ratio),
            Shape,
            "self.storage_offset() must be divisible by {ratio} {}, but got {}",
            what(),
            self.offset
        );
        for (d, stride) in self.strides[..last].iter().enumerate() {
            ensure!(
                stride.is_multiple_of(ratio),
                Shape,
                "self.stride({d}) must be divisible by {ratio} {}, but got {stride}",
                what()
            );
        }
        view.shape[last] /= ratio;
        view.offset /= ratio;
        view.strides[..last].iter_mut().for_each(|stride| *stride /= ratio);
        Ok(view)
    }
}
