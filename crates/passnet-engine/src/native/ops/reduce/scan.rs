//! Running sums and products.

use crate::native::error::{Result, ensure};
use crate::native::tensor::element::{Element, with_element};
use crate::native::tensor::{Buffer, Tensor};
use passnet_cpu::parallel::for_each_weighted_chunk;
use passnet_graph::DType;

/// What runs along the dimension.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "`cumsum` and `cumprod`")]
pub enum Scan {
    Sum,
    Product,
}

/// `torch.cumsum`, `torch.cumprod`: totals are kept in double precision and rounded at each element.
pub fn scan(input: &Tensor, kind: Scan, dim: i64, dtype: Option<DType>) -> Result<Tensor> {
    let own = input.dtype();
    let dtype = dtype.unwrap_or(if own.is_float() { own } else { DType::Int64 });
    ensure!(
        !own.is_complex() && !dtype.is_complex(),
        Unsupported,
        "scans of complex tensors are not supported"
    );
    let d = input.dim(dim)?;
    if input.ndim() == 0 {
        return input.dense_copy(dtype);
    }
    let view = input.movedim(&[d as i64], &[-1])?;
    let length = input.shape()[d];
    let result = with_element!(dtype, T => {
        let mut out = Buffer::<T>::new(view.numel())?;
        if dtype.is_float() {
            let source = view.to_dtype(dtype)?;
            let values = source.values::<f64>()?;
            for_each_weighted_chunk(&mut out, length, 4, |index, row| {
                let mut total = if kind == Scan::Sum { 0.0 } else { 1.0 };
                for (o, v) in row.iter_mut().zip(&values[index * length..]) {
                    total = if kind == Scan::Sum { total + v } else { total * v };
                    *o = T::from_f64(total);
                }
            });
        } else {
            let values = view.values::<i64>()?;
            for_each_weighted_chunk(&mut out, length, 4, |index, row| {
                let mut total = i64::from(kind == Scan::Product);
                for (o, v) in row.iter_mut().zip(&values[index * length..]) {
                    total = if kind == Scan::Sum { total.wrapping_add(*v) } else { total.wrapping_mul(*v) };
                    *o = T::from_i64(total);
                }
            });
        }
        Tensor::from_buffer(out, view.shape())?
    });
    result.movedim(&[-1], &[d as i64])?.contiguous()
}
