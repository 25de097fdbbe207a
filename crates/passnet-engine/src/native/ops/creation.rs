//! New tensors from numbers.

use crate::native::error::{Result, ensure};
use crate::native::tensor::element::{Element, with_element};
use crate::native::tensor::layout::numel;
use crate::native::tensor::{Buffer, Scalar, Tensor};
use passnet_graph::DType;

/// `torch.tensor(data, dtype=...).reshape(shape)`.
pub fn tensor(data: &[Scalar], shape: &[usize], dtype: DType) -> Result<Tensor> {
    let count = numel(shape)?;
    ensure!(
        count == data.len(),
        Shape,
        "shape '{shape:?}' is invalid for input of size {}",
        data.len()
    );
    with_element!(dtype, T => {
        let mut buffer = Buffer::<T>::new(count)?;
        for (o, v) in buffer.iter_mut().zip(data) {
            *o = v.to_element();
        }
        Tensor::from_buffer(buffer, shape)
    })
}

/// `torch.arange`: the type of the result decides in which type positions are computed.
pub fn arange(start: Scalar, end: Scalar, step: Scalar, dtype: DType) -> Result<Tensor> {
    ensure!(!step.is_zero(), Value, "step must be nonzero");
    let whole = matches!((start, end, step), (Scalar::Int(_), Scalar::Int(_), Scalar::Int(_)));
    let (from, to, by) = (start.to_f64(), end.to_f64(), step.to_f64());
    ensure!(from.is_finite() && to.is_finite(), Value, "unsupported range: {from} -> {to}");
    ensure!(
        (by > 0.0 && to >= from) || (by < 0.0 && to <= from),
        Value,
        "upper bound and lower bound inconsistent with step sign"
    );
    let count = if whole {
        let (start, end, step) = (start.to_i64(), end.to_i64(), step.to_i64());
        let span = (i128::from(end) - i128::from(start)).unsigned_abs();
        span.div_ceil(u128::from(step.unsigned_abs())) as usize
    } else {
        ((to - from) / by).ceil() as usize
    };
    with_element!(dtype, T => {
        let mut buffer = Buffer::<T>::new(count)?;
        if dtype.is_float() {
            for (i, o) in buffer.iter_mut().enumerate() {
                *o = T::from_f64(from + by * i as f64);
            }
        } else {
            let (start, step) = (start.to_i64(), step.to_i64());
            for (i, o) in buffer.iter_mut().enumerate() {
                *o = T::from_i64(start.wrapping_add(step.wrapping_mul(i as i64)));
            }
        }
        Tensor::from_buffer(buffer, &[count])
    })
}

/// `torch.linspace`: counted from both ends towards the middle.
pub fn linspace(start: f64, end: f64, steps: usize, dtype: DType) -> Result<Tensor> {
    with_element!(dtype, T => {
        let mut buffer = Buffer::<T>::new(steps)?;
        let single = dtype != DType::Float64;
        let step = (end - start) / (steps.max(2) - 1) as f64;
        let half = steps / 2;
        for (i, o) in buffer.iter_mut().enumerate() {
            let (origin, distance) =
                if i < half { (start, i as f64) } else { (end, -((steps - 1 - i) as f64)) };
            *o = if single && dtype.is_float() {
                T::from_f32((step as f32).mul_add(distance as f32, origin as f32))
            } else {
                T::from_f64(step.mul_add(distance, origin))
            };
        }
        if steps == 1 {
            buffer[0] = T::from_f64(start);
        }
        Tensor::from_buffer(buffer, &[steps])
    })
}

/// `torch.eye`.
pub fn eye(rows: usize, columns: usize, dtype: DType) -> Result<Tensor> {
    let matrix = Tensor::zeros(&[rows, columns], dtype)?;
    matrix.diagonal(0, 0, 1)?.fill(Scalar::Int(1))?;
    Ok(matrix)
}
