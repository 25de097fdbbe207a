//! New tensors.

use super::args::Args;
use super::dim::Dim;
use super::problem::{Inferred, Problem};
use super::strides;
use super::value::{Scalar, Shape, TensorType, Value};
use crate::dtype::{DType, Kind};
use crate::ops::Op;
use std::borrow::Cow;

pub(super) fn sized(args: &Args) -> Inferred<Value> {
    let op = args.op();
    let shape = args.ints("size")?;
    if shape.iter().any(|dim| dim.size < 0) {
        return Err(Problem::invalid(format!(
            "{}: Dimension size must be non-negative.",
            op.name()
        )));
    }
    let given = args.dtype("dtype")?;
    let dtype = match op {
        Op::NewZeros | Op::NewOnes | Op::NewEmpty | Op::NewFull => {
            given.unwrap_or(args.tensor("input")?.dtype)
        }
        Op::Full => match given {
            Some(dtype) => dtype,
            None => match &*args.operand("fill_value")? {
                Value::Tensor(tensor) => tensor.dtype,
                Value::Scalar(number) => number.dtype(),
                _ => DType::Float32,
            },
        },
        Op::Randint => given.unwrap_or(DType::Int64),
        _ => given.unwrap_or(DType::Float32),
    };
    let channels_last = args
        .text("memory_format")?
        .is_some_and(|format| format.contains("channels_last") && matches!(shape.len(), 4 | 5));
    let steps =
        if channels_last { strides::channels_last(&shape) } else { strides::contiguous(&shape) };
    Ok(TensorType::strided(dtype, shape, steps).into())
}

pub(super) fn like(args: &Args) -> Inferred<Value> {
    let input = args.first_tensor()?;
    let dtype = args.dtype("dtype")?.unwrap_or(input.dtype);
    if args.op() == Op::RandnLike && dtype.kind() < Kind::Float {
        return Err(Problem::invalid(format!("normal_ is not implemented for {dtype}")));
    }
    let steps = match args.text("memory_format")?.as_deref() {
        Some(name) if name.contains("channels_last") => strides::channels_last(&input.shape),
        Some(name) if name.contains("contiguous") => strides::contiguous(&input.shape),
        _ => strides::like(input),
    };
    Ok(TensorType::strided(dtype, input.shape.clone(), steps).into())
}

/// `torch.tensor` and its relatives: dtype and shape follow the data.
pub(super) fn from_data(args: &Args) -> Inferred<Value> {
    let name = if args.op() == Op::ScalarTensor { "s" } else { "data" };
    let data = args.value(name)?;
    let given = args.dtype("dtype")?;
    if let Value::Tensor(tensor) = &*data {
        let dtype = given.unwrap_or(tensor.dtype);
        if args.op() == Op::AsTensor && dtype == tensor.dtype {
            return Ok(tensor.clone().into());
        }
        return Ok(strides::like_tensor(tensor, dtype).into());
    }
    let mut shape = Shape::new();
    let mut found: Option<DType> = None;
    measure(&data, 0, &mut shape, &mut found)?;
    let dtype = given.or(match args.op() {
        Op::ScalarTensor => Some(DType::Float32),
        Op::NewTensor => Some(args.tensor("input")?.dtype),
        _ => found,
    });
    Ok(TensorType::contiguous(dtype.unwrap_or(DType::Float32), shape).into())
}

/// Walks nested lists: the shape by the first entries, each list of the same length, the widest kind.
fn measure(
    data: &Value,
    depth: usize,
    shape: &mut Shape,
    dtype: &mut Option<DType>,
) -> Inferred<()> {
    match data {
        Value::Sequence(items) => {
            let length = items.len() as i64;
            match shape.get(depth) {
                Some(dim) if dim.size != length => {
                    return Err(Problem::invalid(format!(
                        "expected sequence of length {} at dim {depth} (got {length})",
                        dim.size
                    )));
                }
                Some(_) => {}
                None => shape.push(Dim::fixed(length)),
            }
            items.iter().try_for_each(|item| measure(item, depth + 1, shape, dtype))
        }
        Value::Scalar(number) => {
            check_leaf(depth, shape)?;
            let own = number.dtype();
            *dtype = Some(dtype.map_or(own, |seen| seen.promote(own)));
            Ok(())
        }
        Value::Tensor(tensor) if tensor.rank() == 0 => {
            check_leaf(depth, shape)?;
            let own = match tensor.dtype.kind() {
                Kind::Float => DType::Float32,
                Kind::Integer => DType::Int64,
                _ => tensor.dtype,
            };
            *dtype = Some(dtype.map_or(own, |seen| seen.promote(own)));
            Ok(())
        }
        other => Err(Problem::invalid(format!("Could not infer dtype of {}", other.type_name()))),
    }
}

fn check_leaf(depth: usize, shape: &Shape) -> Inferred<()> {
    match shape.get(depth) {
        Some(dim) => Err(Problem::invalid(format!(
            "expected sequence of length {} at dim {depth}, got a number",
            dim.size
        ))),
        None => Ok(()),
    }
}

pub(super) fn range(args: &Args) -> Inferred<Value> {
    let op = args.op();
    let given = args.dtype("dtype")?;
    if op == Op::Arange {
        return arange(args, given);
    }
    let steps = args.int("steps")?;
    if steps.size < 0 {
        return Err(Problem::invalid("number of steps must be non-negative"));
    }
    let shape = strides::shape([steps]);
    Ok(TensorType::contiguous(given.unwrap_or(DType::Float32), shape).into())
}

fn arange(args: &Args, given: Option<DType>) -> Inferred<Value> {
    let number = |name: &str, default: i64| -> Inferred<Scalar> {
        if !args.bound.has(name) {
            return Ok(Scalar::Int(Some(Dim::fixed(default))));
        }
        match args.value(name)? {
            Cow::Borrowed(Value::Scalar(number)) => Ok(number.clone()),
            Cow::Owned(Value::Scalar(number)) => Ok(number),
            value => match &*value {
                Value::Tensor(tensor) => {
                    let value = args.scope.known_scalar(tensor);
                    Ok(if tensor.dtype.is_float() {
                        Scalar::Float(value)
                    } else {
                        Scalar::Int(value.map(|v| Dim::fixed(v as i64)))
                    })
                }
                other => Err(Problem::invalid(format!(
                    "`{name}` must be a number, not {}",
                    other.type_name()
                ))),
            },
        }
    };
    let (start, end, step) = (number("start", 0)?, number("end", 0)?, number("step", 1)?);
    let unknown = || Problem::unknown("the bounds of `arange` depend on the elements of a tensor");
    let count = match (start.as_dim(), end.as_dim(), step.as_dim()) {
        (Some(start), Some(end), Some(step)) => {
            check_bounds(start.size as f64, end.size as f64, step.size as f64)?;
            // Rounded up, whichever way the range runs.
            let span = if step.size > 0 { end.sub(&start)? } else { start.sub(&end)? };
            let step = Dim::fixed(step.size.saturating_abs());
            span.add(&step)?.offset(-1)?.floor_div(&step)?
        }
        _ => {
            let start = start.as_f64().ok_or_else(unknown)?;
            let end = end.as_f64().ok_or_else(unknown)?;
            let step = step.as_f64().ok_or_else(unknown)?;
            check_bounds(start, end, step)?;
            let count = ((end - start) / step).ceil();
            if !(0.0..1e15).contains(&count) {
                return Err(Problem::invalid("invalid size, possible overflow?"));
            }
            Dim::fixed(count as i64)
        }
    };
    let is_float =
        [&start, &end, &step].into_iter().any(|number| matches!(number, Scalar::Float(_)));
    let dtype = given.unwrap_or(if is_float { DType::Float32 } else { DType::Int64 });
    Ok(TensorType::contiguous(dtype, strides::shape([count])).into())
}

fn check_bounds(start: f64, end: f64, step: f64) -> Inferred<()> {
    if step == 0.0 {
        return Err(Problem::invalid("step must be nonzero"));
    }
    if !start.is_finite() || !end.is_finite() || !step.is_finite() {
        return Err(Problem::invalid(format!("unsupported range: {start} -> {end}")));
    }
    if (step > 0.0 && end < start) || (step < 0.0 && end > start) {
        return Err(Problem::invalid("upper bound and lower bound inconsistent with step sign"));
    }
    Ok(())
}

pub(super) fn matrix(args: &Args) -> Inferred<Value> {
    let given = args.dtype("dtype")?;
    match args.op() {
        Op::Eye => {
            let rows = args.int("n")?;
            let columns = args.optional_int("m")?.unwrap_or_else(|| rows.clone());
            let shape = strides::shape([rows, columns]);
            Ok(TensorType::contiguous(given.unwrap_or(DType::Float32), shape).into())
        }
        Op::Fftfreq | Op::Rfftfreq => {
            let count = args.int("n")?;
            let count = match args.op() {
                Op::Rfftfreq => count.divided(2)?.offset(1)?,
                _ => count,
            };
            let dtype = given.unwrap_or(DType::Float32);
            Ok(TensorType::contiguous(dtype, strides::shape([count])).into())
        }
        Op::HannWindow
        | Op::HammingWindow
        | Op::BlackmanWindow
        | Op::BartlettWindow
        | Op::KaiserWindow => {
            let shape = strides::shape([args.int("window_length")?]);
            Ok(TensorType::contiguous(given.unwrap_or(DType::Float32), shape).into())
        }
        op => {
            let (rows, columns) = (args.int("row")?.size, args.int("col")?.size);
            let offset = args.int("offset")?.size;
            let count = triangle(op == Op::TrilIndices, rows, columns, offset);
            let count =
                count.ok_or_else(|| Problem::invalid("row and col must be non-negative"))?;
            let shape = strides::shape([Dim::fixed(2), Dim::fixed(count)]);
            Ok(TensorType::contiguous(given.unwrap_or(DType::Int64), shape).into())
        }
    }
}

/// Elements on and below (or on and above) a diagonal.
fn triangle(lower: bool, rows: i64, columns: i64, offset: i64) -> Option<i64> {
    const MAX_SIDE: i64 = 1 << 20;
    if !(0..=MAX_SIDE).contains(&rows) || !(0..=MAX_SIDE).contains(&columns) {
        return None;
    }
    let offset = offset.clamp(-MAX_SIDE, MAX_SIDE);
    let below = |row: i64, offset: i64| (row + offset + 1).clamp(0, columns);
    let count = |offset: i64| (0..rows).map(|row| below(row, offset)).sum::<i64>();
    Some(if lower { count(offset) } else { rows * columns - count(offset - 1) })
}

/// `fill_`, `zero_`, `normal_`: the tensor itself.
pub(super) fn filled(args: &Args) -> Inferred<Value> {
    let input = args.first_tensor()?;
    if args.op() == Op::Fill
        && let Value::Tensor(value) = &*args.operand("value")?
        && value.rank() > 0
    {
        return Err(Problem::invalid(
            "fill_ only supports 0-dimension value tensor but got tensor with more dimensions.",
        ));
    }
    Ok(strides::like_tensor(input, input.dtype).into())
}

pub(super) fn drawn(args: &Args) -> Inferred<Value> {
    match args.op() {
        Op::Randperm => {
            let shape = strides::shape([args.int("n")?]);
            let dtype = args.dtype("dtype")?.unwrap_or(DType::Int64);
            Ok(TensorType::contiguous(dtype, shape).into())
        }
        Op::Multinomial => {
            let input = args.tensor("input")?;
            let mut shape = input.shape.clone();
            match shape.last_mut() {
                Some(last) if shape_is_distribution(input.rank()) => {
                    *last = args.int("num_samples")?
                }
                _ => return Err(Problem::invalid("prob_dist must be 1 or 2 dim")),
            }
            Ok(TensorType::contiguous(DType::Int64, shape).into())
        }
        _ => {
            let input = args.tensor("input")?;
            Ok(TensorType::contiguous(input.dtype, input.shape.clone()).into())
        }
    }
}

fn shape_is_distribution(rank: usize) -> bool {
    matches!(rank, 1 | 2)
}
