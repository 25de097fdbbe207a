//! New tensors, from numbers and from the random generator.

use super::{Args, OpFunction};
use crate::engine::Value;
use crate::native::error::{Result, ensure};
use crate::native::ops::pointwise::{self, Binary, Unary};
use crate::native::ops::windows::Window;
use crate::native::ops::{creation, movement};
use crate::native::tensor::layout::Dims;
use crate::native::tensor::{Arg, Scalar, Tensor};
use passnet_graph::DType;
use passnet_graph::ops::Op;

pub(super) fn function_of(op: Op) -> Option<OpFunction> {
    Some(match op {
        Op::Tensor | Op::AsTensor | Op::ScalarTensor | Op::NewTensor => from_data,
        Op::Zeros | Op::Ones | Op::Empty | Op::Full => sized,
        Op::NewZeros | Op::NewOnes | Op::NewEmpty | Op::NewFull => sized,
        Op::ZerosLike | Op::OnesLike | Op::EmptyLike | Op::FullLike => like,
        Op::Arange => arange,
        Op::Linspace | Op::Logspace => spaced,
        Op::Eye => eye,
        Op::TrilIndices | Op::TriuIndices => triangle_indices,
        Op::HannWindow => hann_window,
        Op::Fftfreq | Op::Rfftfreq => frequencies,
        Op::HammingWindow | Op::BlackmanWindow | Op::BartlettWindow | Op::KaiserWindow => window,
        Op::Fill | Op::Zero => fill,
        Op::Rand | Op::Randn | Op::RandLike | Op::RandnLike | Op::Randint | Op::Randperm => drawn,
        Op::Bernoulli | Op::NormalInPlace | Op::UniformInPlace | Op::Multinomial => redrawn,
        _ => return None,
    })
}

/// The type torch gives to data that names none.
fn data_type(numbers: &[Scalar], float: DType) -> DType {
    let mut dtype = DType::Bool;
    for number in numbers {
        let own = match number {
            Scalar::Bool(_) => DType::Bool,
            Scalar::Int(_) => DType::Int64,
            Scalar::Float(_) => float,
            Scalar::Complex(..) => float.complex(),
        };
        dtype = dtype.promote(own);
    }
    if numbers.is_empty() { float } else { dtype }
}

/// A tensor from nested sequences of numbers; all sequences of a level have one length.
pub(super) fn nested(data: &Value, dtype: Option<DType>, float: DType) -> Result<Tensor> {
    fn collect(
        value: &Value,
        depth: usize,
        shape: &mut Dims,
        into: &mut Vec<Scalar>,
    ) -> Result<()> {
        match value {
            Value::Sequence(items) => {
                if shape.len() == depth {
                    ensure!(into.is_empty(), Value, "expected sequences of equal length");
                    shape.push(items.len());
                }
                ensure!(
                    shape.get(depth) == Some(&items.len()),
                    Value,
                    "expected sequence of length {} at dim {depth} (got {})",
                    shape.get(depth).copied().unwrap_or(0),
                    items.len()
                );
                items.iter().try_for_each(|item| collect(item, depth + 1, shape, into))
            }
            value => {
                ensure!(shape.len() == depth, Value, "expected sequences of equal depth");
                into.push(match value {
                    Value::Number(number) => *number,
                    Value::Tensor(tensor) => tensor.item()?,
                    other => return Err(super::args::wrong_type("data", "number", other)),
                });
                Ok(())
            }
        }
    }
    let (mut shape, mut numbers) = (Dims::new(), Vec::new());
    collect(data, 0, &mut shape, &mut numbers)?;
    creation::tensor(&numbers, &shape, dtype.unwrap_or_else(|| data_type(&numbers, float)))
}

fn from_data(args: &Args<'_>) -> Result<Value> {
    let name = if args.op == Op::ScalarTensor { "s" } else { "data" };
    let dtype = args.dtype("dtype");
    if let Value::Tensor(data) = args.value(name) {
        let converted = data.to_dtype(dtype.unwrap_or(data.dtype()))?;
        let shares = args.op == Op::AsTensor || !converted.shares_storage(data);
        return Ok(if shares { converted } else { converted.copy()? }.into());
    }
    let dtype = match args.op {
        Op::NewTensor => dtype.or(Some(args.input()?.dtype())),
        Op::ScalarTensor => dtype.or(Some(args.default_float())),
        _ => dtype,
    };
    Ok(nested(args.value(name), dtype, args.default_float())?.into())
}

fn filling(args: &Args<'_>) -> Result<Scalar> {
    match args.op {
        Op::Ones | Op::NewOnes | Op::OnesLike => Ok(Scalar::Int(1)),
        Op::Full | Op::NewFull | Op::FullLike => args.number("fill_value"),
        _ => Ok(Scalar::Int(0)),
    }
}

fn sized(args: &Args<'_>) -> Result<Value> {
    let shape = args.sizes("size")?;
    let value = filling(args)?;
    let own = match args.op {
        Op::NewZeros | Op::NewOnes | Op::NewEmpty | Op::NewFull => args.input()?.dtype(),
        Op::Full => match args.value("fill_value") {
            Value::Tensor(tensor) => tensor.dtype(),
            _ => data_type(&[value], args.default_float()),
        },
        _ => args.default_float(),
    };
    let dtype = args.dtype("dtype").unwrap_or(own);
    let filled = if value == Scalar::Int(0) {
        Tensor::zeros(&shape, dtype)?
    } else {
        Tensor::full(&shape, value, dtype)?
    };
    Ok(match args.text("memory_format") {
        Some(name) if name.contains("channels_last") => filled.channels_last()?,
        _ => filled,
    }
    .into())
}

fn like(args: &Args<'_>) -> Result<Value> {
    let input = args.input()?;
    let dtype = args.dtype("dtype").unwrap_or(input.dtype());
    Ok(movement::full_like(input, filling(args)?, dtype)?.into())
}

fn arange(args: &Args<'_>) -> Result<Value> {
    let start = if args.has("start") { args.number("start")? } else { Scalar::Int(0) };
    let step = if args.has("step") { args.number("step")? } else { Scalar::Int(1) };
    let end = args.number("end")?;
    let whole = [start, end, step].iter().all(|n| matches!(n, Scalar::Int(_) | Scalar::Bool(_)));
    let own = if whole { DType::Int64 } else { args.default_float() };
    Ok(creation::arange(start, end, step, args.dtype("dtype").unwrap_or(own))?.into())
}

fn spaced(args: &Args<'_>) -> Result<Value> {
    let dtype = args.dtype("dtype").unwrap_or(args.default_float());
    let (start, end) = (args.float("start")?, args.float("end")?);
    let steps = args.size("steps")?;
    if args.op == Op::Linspace {
        return Ok(creation::linspace(start, end, steps, dtype)?.into());
    }
    let exponents = creation::linspace(start, end, steps, DType::Float64)?;
    let powers = pointwise::binary(
        Binary::Pow,
        &Arg::Scalar(Scalar::Float(args.float("base")?)),
        &exponents.into(),
    )?;
    Ok(powers.to_dtype(dtype)?.into())
}

fn eye(args: &Args<'_>) -> Result<Value> {
    let rows = args.size("n")?;
    let columns = match args.optional_int("m")? {
        Some(_) => args.size("m")?,
        None => rows,
    };
    let dtype = args.dtype("dtype").unwrap_or(args.default_float());
    Ok(creation::eye(rows, columns, dtype)?.into())
}

fn triangle_indices(args: &Args<'_>) -> Result<Value> {
    let (rows, columns, offset) = (args.size("row")?, args.size("col")?, args.int("offset")?);
    let mut places = [Vec::new(), Vec::new()];
    let lower = args.op == Op::TrilIndices;
    // The longest list that a square of this side can give must fit the memory budget before it is built.
    Tensor::zeros(&[rows, columns], DType::Bool)?;
    for row in 0..rows as i64 {
        let edge = row.saturating_add(offset);
        let (from, to) = if lower {
            (0, edge.saturating_add(1).clamp(0, columns as i64))
        } else {
            (edge.clamp(0, columns as i64), columns as i64)
        };
        for column in from..to {
            places[0].push(row);
            places[1].push(column);
        }
    }
    let count = places[0].len();
    let result = Tensor::from_slice(&places.concat(), &[2, count])?;
    Ok(result.to_dtype(args.dtype("dtype").unwrap_or(DType::Int64))?.into())
}

fn hann_window(args: &Args<'_>) -> Result<Value> {
    let dtype = args.dtype("dtype").unwrap_or(args.default_float());
    let length = args.size("window_length")?;
    if length <= 1 {
        return Ok(Tensor::full(&[length], Scalar::Int(1), dtype)?.into());
    }
    let periodic = args.flag("periodic")?;
    let count = length + usize::from(periodic);
    let steps = creation::arange(Scalar::Int(0), Scalar::Int(count as i64), Scalar::Int(1), dtype)?;
    let angle = std::f64::consts::PI * 2.0 / (count - 1) as f64;
    let angles = pointwise::mul(&steps.into(), &angle.into())?;
    let cosines = pointwise::unary(Unary::Cos, &angles)?;
    let scaled = pointwise::mul(&cosines.into(), &(-0.5).into())?;
    let window = pointwise::add(&scaled.into(), &0.5.into(), Scalar::Int(1))?;
    Ok(window.narrow(0, 0, length)?.into())
}

/// The frequencies of a transform's results.
fn frequencies(args: &Args<'_>) -> Result<Value> {
    let (length, apart) = (args.size("n")?, args.float("d")?);
    let whole = |count: usize| -> Result<Tensor> {
        let count = Scalar::Int(count as i64);
        creation::arange(Scalar::Int(0), count, Scalar::Int(1), DType::Float64)
    };
    let steps = match args.op {
        Op::Rfftfreq => whole(length / 2 + 1)?,
        _ => {
            let rising = whole(length)?;
            let late = length.div_ceil(2);
            let (low, high) =
                (rising.narrow(0, 0, late)?, rising.narrow(0, late as i64, length - late)?);
            let high = pointwise::sub(&high.into(), &(length as i64).into(), Scalar::Int(1))?;
            movement::cat(&[low, high], 0)?
        }
    };
    let factor = Scalar::Float(1.0 / (length as f64 * apart));
    let scaled = pointwise::mul(&steps.into(), &factor.into())?;
    Ok(scaled.to_dtype(args.dtype("dtype").unwrap_or(args.default_float()))?.into())
}

fn window(args: &Args<'_>) -> Result<Value> {
    let shape = match args.op {
        Op::HammingWindow => {
            Window::Hamming { alpha: args.float("alpha")?, beta: args.float("beta")? }
        }
        Op::BlackmanWindow => Window::Blackman,
        Op::BartlettWindow => Window::Bartlett,
        _ => Window::Kaiser { beta: args.float("beta")? },
    };
    let dtype = args.dtype("dtype").unwrap_or(args.default_float());
    Ok(shape.of(args.size("window_length")?, args.flag("periodic")?, dtype)?.into())
}

fn fill(args: &Args<'_>) -> Result<Value> {
    let target = args.written()?;
    if args.op == Op::Zero {
        target.fill(Scalar::Int(0))?;
    } else {
        match args.operand("value")? {
            Arg::Tensor(value) => {
                ensure!(
                    value.ndim() == 0,
                    Shape,
                    "fill_ only supports 0-dimension value tensor but got tensor with {} dimensions.",
                    value.ndim()
                );
                target.copy_from(&value)?;
            }
            Arg::Scalar(value) => target.fill(value)?,
        }
    }
    Ok(target.into())
}

fn drawn(args: &Args<'_>) -> Result<Value> {
    let mut generator = args.context.generator();
    let float = args.dtype("dtype").unwrap_or(args.default_float());
    Ok(match args.op {
        Op::Rand => generator.rand(&args.sizes("size")?, float)?,
        Op::Randn => generator.randn(&args.sizes("size")?, float)?,
        Op::RandLike | Op::RandnLike => {
            let input = args.input()?;
            let dtype = args.dtype("dtype").unwrap_or(input.dtype());
            if args.op == Op::RandLike {
                generator.rand(input.shape(), dtype)?
            } else {
                generator.randn(input.shape(), dtype)?
            }
        }
        Op::Randperm => {
            generator.randperm(args.size("n")?, args.dtype("dtype").unwrap_or(DType::Int64))?
        }
        _ => {
            let low = if args.has("low") { args.int("low")? } else { 0 };
            let dtype = args.dtype("dtype").unwrap_or(DType::Int64);
            generator.randint(low, args.int("high")?, &args.sizes("size")?, dtype)?
        }
    }
    .into())
}

/// `bernoulli`, `normal_`, `uniform_`, `multinomial`.
fn redrawn(args: &Args<'_>) -> Result<Value> {
    let input = args.input()?;
    let mut generator = args.context.generator();
    let values = match args.op {
        Op::Bernoulli => match args.optional_float("p")? {
            Some(p) => generator.bernoulli_like(input, p)?,
            None if args.in_place => generator.bernoulli_like(input, 0.5)?,
            None => generator.bernoulli(input)?,
        },
        Op::NormalInPlace => {
            let drawn = generator.randn(input.shape(), input.dtype())?;
            let (mean, std) = (args.float("mean")?, args.float("std")?);
            let scaled = pointwise::mul(&drawn.into(), &std.into())?;
            pointwise::add(&scaled.into(), &mean.into(), Scalar::Int(1))?
        }
        Op::UniformInPlace => {
            let drawn = generator.rand(input.shape(), input.dtype())?;
            let (from, to) = (args.float("from")?, args.float("to")?);
            let scaled = pointwise::mul(&drawn.into(), &(to - from).into())?;
            pointwise::add(&scaled.into(), &from.into(), Scalar::Int(1))?
        }
        _ => generator.multinomial(input, args.size("num_samples")?, args.flag("replacement")?)?,
    };
    Ok(values.into())
}
