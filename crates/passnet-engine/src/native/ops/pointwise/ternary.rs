//! Functions of three operands: selection, clamping, fused multiply-adds.

use super::binary::{Binary, binary};
use super::bitwise::logical_not;
use super::blocks::{self, Block};
use super::unary::pick;
use crate::native::error::{Result, ensure};
use crate::native::tensor::element::Real;
use crate::native::tensor::{Arg, Complex, Scalar, Tensor, promote};
use passnet_cpu::multiversion;
use passnet_graph::DType;

/// `torch.where(condition, a, b)`.
pub fn where_select(condition: &Tensor, a: &Arg, b: &Arg) -> Result<Tensor> {
    ensure!(
        matches!(condition.dtype(), DType::Bool | DType::UInt8),
        DType,
        "where expected condition to be a boolean tensor, but got a tensor with dtype {}",
        condition.dtype()
    );
    let dtype = promote::result_type([a, b]);
    let cast = |arg: &Arg| -> Result<Tensor> {
        let tensor = arg.to_tensor()?;
        if tensor.ndim() == 0 { tensor.to_dtype(dtype) } else { Ok(tensor) }
    };
    let (a, b) = (cast(a)?, cast(b)?);
    let inputs = [condition, &a, &b];
    match dtype {
        DType::Float64 => blocks::map::<f64>(&inputs, dtype, &select_real),
        d if d.is_float() => blocks::map::<f32>(&inputs, dtype, &select_real),
        d if d.is_complex() => blocks::map::<Complex<f64>>(&inputs, dtype, &|i, o| {
            for (at, o) in o.iter_mut().enumerate() {
                *o = if pick(&i[0], at).re != 0.0 { pick(&i[1], at) } else { pick(&i[2], at) };
            }
        }),
        _ => blocks::map::<i64>(&inputs, dtype, &|i, o| {
            for (at, o) in o.iter_mut().enumerate() {
                *o = if pick(&i[0], at) != 0 { pick(&i[1], at) } else { pick(&i[2], at) };
            }
        }),
    }
}

fn select_real<T: Real>(inputs: &[Block<'_, T>], out: &mut [T]) {
    match (inputs[0], inputs[1], inputs[2]) {
        (Block::Run(c), Block::Run(a), Block::One(b)) => select_run_one(c, a, b, out),
        (Block::Run(c), Block::One(a), Block::Run(b)) => select_one_run(c, a, b, out),
        (Block::Run(c), Block::Run(a), Block::Run(b)) => select_runs(c, a, b, out),
        _ => {
            for (at, o) in out.iter_mut().enumerate() {
                let chosen = if pick(&inputs[0], at) != T::ZERO { &inputs[1] } else { &inputs[2] };
                *o = pick(chosen, at);
            }
        }
    }
}

multiversion! {
    fn select_runs[T: Real](c: &[T], a: &[T], b: &[T], out: &mut [T]) {
        for (((o, c), a), b) in out.iter_mut().zip(c).zip(a).zip(b) {
            *o = if *c != T::ZERO { *a } else { *b };
        }
    }
}

multiversion! {
    fn select_run_one[T: Real](c: &[T], a: &[T], b: T, out: &mut [T]) {
        for ((o, c), a) in out.iter_mut().zip(c).zip(a) {
            *o = if *c != T::ZERO { *a } else { b };
        }
    }
}

multiversion! {
    fn select_one_run[T: Real](c: &[T], a: T, b: &[T], out: &mut [T]) {
        for ((o, c), b) in out.iter_mut().zip(c).zip(b) {
            *o = if *c != T::ZERO { a } else { *b };
        }
    }
}

/// `Tensor.masked_fill`: the value must fit the tensor's type.
pub fn masked_fill(input: &Tensor, mask: &Tensor, value: &Arg) -> Result<Tensor> {
    let dtype = input.dtype();
    ensure!(
        mask.dtype() == DType::Bool,
        DType,
        "masked_fill_ only supports boolean masks, but got mask with dtype {}",
        mask.dtype()
    );
    let value = value.to_tensor()?;
    ensure!(
        value.ndim() == 0,
        Shape,
        "masked_fill only supports a 0-dimensional value tensor, but got tensor with {} dimension(s).",
        value.ndim()
    );
    fits(value.item()?, dtype)?;
    let value = value.to_dtype(dtype)?;
    // Torch lays the result out row by row, whatever the input's strides are.
    where_select(mask, &value.into(), &input.into())?.contiguous()
}

/// Torch refuses a number that the type cannot hold.
fn fits(value: Scalar, dtype: DType) -> Result<()> {
    let number = value.to_f64();
    let limit = match dtype {
        DType::Float16 => f64::from(half::f16::MAX),
        DType::BFloat16 => f64::from(half::bf16::MAX),
        DType::Float32 => f64::from(f32::MAX),
        DType::Int8 => 127.0,
        DType::UInt8 => 255.0,
        DType::Int16 => 32767.0,
        DType::Int32 => 2_147_483_648.0,
        _ => return Ok(()),
    };
    ensure!(
        !number.is_finite() || number.abs() <= limit,
        Value,
        "value cannot be converted to type {dtype} without overflow"
    );
    Ok(())
}

/// `torch.clamp` with numbers as bounds.
pub fn clamp_scalar(input: &Tensor, min: Option<Scalar>, max: Option<Scalar>) -> Result<Tensor> {
    clamp(input, min.map(Arg::from).as_ref(), max.map(Arg::from).as_ref())
}

/// `torch.clamp`.
pub fn clamp(input: &Tensor, min: Option<&Arg>, max: Option<&Arg>) -> Result<Tensor> {
    ensure!(
        min.is_some() || max.is_some(),
        Value,
        "torch.clamp: At least one of 'min' or 'max' must not be None"
    );
    ensure!(!input.dtype().is_complex(), DType, "clamp is not supported for complex types");
    let mut result = input.clone();
    if let Some(min) = min {
        result = binary(Binary::Maximum, &result.into(), min)?;
    }
    if let Some(max) = max {
        result = binary(Binary::Minimum, &result.into(), max)?;
    }
    Ok(result)
}

fn three(
    a: &Tensor,
    b: &Tensor,
    c: &Tensor,
    name: &str,
    function: fn(f64, f64, f64, f64) -> f64,
    value: f64,
) -> Result<Tensor> {
    let dtype = promote::result_type([&Arg::from(a), &b.into(), &c.into()]);
    ensure!(!dtype.is_complex(), Unsupported, "{name} of complex tensors is not supported");
    blocks::map::<f64>(&[a, b, c], dtype, &|i, o| {
        for (at, o) in o.iter_mut().enumerate() {
            *o = function(pick(&i[0], at), pick(&i[1], at), pick(&i[2], at), value);
        }
    })
}

/// `input + value * a * b`.
pub fn addcmul(input: &Tensor, a: &Tensor, b: &Tensor, value: Scalar) -> Result<Tensor> {
    let dtype = promote::result_type([&Arg::from(input), &a.into(), &b.into()]);
    if dtype.is_float() && dtype != DType::Float64 {
        let value = value.to_f64() as f32;
        return blocks::map::<f32>(&[input, a, b], dtype, &|i, o| {
            for (at, o) in o.iter_mut().enumerate() {
                *o = pick(&i[0], at) + value * pick(&i[1], at) * pick(&i[2], at);
            }
        });
    }
    three(input, a, b, "addcmul", |x, a, b, v| x + v * a * b, value.to_f64())
}

/// `input + value * a / b`.
pub fn addcdiv(input: &Tensor, a: &Tensor, b: &Tensor, value: Scalar) -> Result<Tensor> {
    three(input, a, b, "addcdiv", |x, a, b, v| x + v * a / b, value.to_f64())
}

/// `start + weight * (end - start)`.
pub fn lerp(start: &Tensor, end: &Tensor, weight: &Arg) -> Result<Tensor> {
    let weight = weight.to_tensor()?;
    let dtype = start.dtype();
    ensure!(
        dtype == end.dtype() && dtype.is_float(),
        DType,
        "expected dtype {dtype} for `end` but got dtype {}",
        end.dtype()
    );
    blocks::map::<f64>(&[start, end, &weight], dtype, &|i, o| {
        for (at, o) in o.iter_mut().enumerate() {
            let (a, b, w) = (pick(&i[0], at), pick(&i[1], at), pick(&i[2], at));
            *o = if w.abs() < 0.5 { a + w * (b - a) } else { b - (b - a) * (1.0 - w) };
        }
    })
}

fn classify(input: &Tensor, integers: bool, function: fn(f64) -> bool) -> Result<Tensor> {
    if !input.dtype().is_float() {
        return Tensor::full(input.shape(), Scalar::Bool(integers), DType::Bool);
    }
    blocks::map::<f64>(&[input], DType::Bool, &|i, o| {
        for (at, o) in o.iter_mut().enumerate() {
            *o = f64::from(u8::from(function(pick(&i[0], at))));
        }
    })
}

/// `torch.isnan`.
pub fn isnan(input: &Tensor) -> Result<Tensor> {
    classify(input, false, f64::is_nan)
}

/// `torch.isinf`.
pub fn isinf(input: &Tensor) -> Result<Tensor> {
    classify(input, false, f64::is_infinite)
}

/// `torch.isfinite`.
pub fn isfinite(input: &Tensor) -> Result<Tensor> {
    classify(input, true, f64::is_finite)
}

/// NaN and infinities replaced, by default by zero and the type's largest numbers.
pub fn nan_to_num(
    input: &Tensor,
    nan: Option<f64>,
    positive: Option<f64>,
    negative: Option<f64>,
) -> Result<Tensor> {
    let dtype = input.dtype();
    let largest = match dtype {
        DType::Float16 => f64::from(half::f16::MAX),
        DType::BFloat16 => f64::from(half::bf16::MAX),
        DType::Float32 => f64::from(f32::MAX),
        DType::Float64 => f64::MAX,
        _ => return input.copy(),
    };
    let nan = nan.unwrap_or(0.0);
    let (positive, negative) = (positive.unwrap_or(largest), negative.unwrap_or(-largest));
    let finite = isfinite(input)?;
    let replacement = blocks::map::<f64>(&[input], dtype, &|i, o| {
        for (at, o) in o.iter_mut().enumerate() {
            let value = pick(&i[0], at);
            *o = if value.is_nan() {
                nan
            } else if value > 0.0 {
                positive
            } else {
                negative
            };
        }
    })?;
    where_select(&logical_not(&finite)?, &replacement.into(), &input.into())
}
