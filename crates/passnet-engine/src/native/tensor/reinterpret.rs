//! The same bytes read as another type.

use super::Tensor;
use crate::native::error::{Result, ensure};
use passnet_graph::DType;

impl Tensor {
    /// `x.view(dtype)` for types of the same width.
    pub fn view_dtype(&self, dtype: DType) -> Result<Tensor> {
        ensure!(
            dtype.size() == self.dtype.size(),
            Unsupported,
            "a view of {} as {dtype}, whose elements have another width, is not supported yet",
            self.dtype
        );
        Ok(Tensor { dtype, ..self.clone() })
    }
}
