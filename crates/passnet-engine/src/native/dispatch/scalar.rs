//! Python numbers, sizes and properties of tensors.

use super::args::truth;
use super::{Args, OpFunction, python};
use crate::engine::Value;
use crate::native::error::{Result, bail, ensure};
use crate::native::tensor::layout::is_channels_last;
use crate::native::tensor::{Scalar, Tensor};
use passnet_graph::ops::Op;

/// `tolist` of more elements than this is refused: each becomes a value of its own.
const MAX_LISTED: usize = 1 << 16;

pub(super) fn function_of(op: Op) -> Option<OpFunction> {
    Some(match op {
        Op::Item | Op::ToList | Op::Size | Op::Shape | Op::Numel | Op::Dim | Op::Stride => property,
        Op::StorageOffset | Op::DeviceOf | Op::DtypeOf | Op::IsContiguous => property,
        Op::SymSum | Op::SymMax | Op::SymMin | Op::SymNot | Op::SymIte => number,
        Op::MakeSize | Op::MakeDevice | Op::PromoteTypes => number,
        Op::SymInt | Op::SymFloat | Op::SymSqrt | Op::MathCeil | Op::MathFloor => convert,
        Op::RoundNumber => convert,
        _ => return None,
    })
}

fn property(args: &Args<'_>) -> Result<Value> {
    // A Python number has no shape, but `n.item()` of one appears where a graph was captured with symbols.
    if let (Op::Item, Value::Number(number)) = (args.op, args.first()) {
        return Ok(Value::Number(*number));
    }
    let input = args.input()?;
    Ok(match args.op {
        Op::Item => Value::Number(input.item()?),
        Op::ToList => list(input)?,
        Op::Size => match args.optional_int("dim")? {
            Some(dim) => Value::int(input.size(dim)? as i64),
            None => Value::sizes(input.shape()),
        },
        Op::Shape => Value::sizes(input.shape()),
        Op::Numel => Value::int(input.numel() as i64),
        Op::Dim => Value::int(input.ndim() as i64),
        Op::Stride => match args.optional_int("dim")? {
            Some(dim) => {
                let dim = input.dim(dim)?;
                Value::int(input.strides().get(dim).copied().unwrap_or(1) as i64)
            }
            None => Value::sizes(input.strides()),
        },
        Op::StorageOffset => Value::int(input.storage_offset() as i64),
        Op::DeviceOf => Value::Device,
        Op::DtypeOf => Value::Dtype(input.dtype()),
        _ => match args.text("memory_format") {
            Some(format) if format.contains("channels_last") => {
                Value::bool(is_channels_last(input.shape(), input.strides()))
            }
            _ => Value::bool(input.is_contiguous()),
        },
    })
}

/// The elements as nested lists of numbers.
fn list(input: &Tensor) -> Result<Value> {
    // Also of nothing there can be many lists.
    let lists = input.shape().iter().fold(1usize, |all, size| all.saturating_mul((*size).max(1)));
    ensure!(
        lists <= MAX_LISTED,
        Value,
        "a list of {lists} numbers is too long; this engine makes lists of at most {MAX_LISTED}"
    );
    if input.ndim() == 0 {
        return Ok(Value::Number(input.item()?));
    }
    let parts = input.unbind(0)?;
    Ok(Value::Sequence(parts.iter().map(list).collect::<Result<_>>()?))
}

fn number(args: &Args<'_>) -> Result<Value> {
    Ok(match args.op {
        Op::SymSum => {
            let Value::Sequence(terms) = args.value("args") else {
                bail!(DType, "sym_sum takes a sequence of ints");
            };
            let mut sum = Value::int(0);
            for term in terms.iter() {
                sum = python::binary(Op::Add, &sum, term)?;
            }
            sum
        }
        Op::SymMax | Op::SymMin => python::binary(args.op, args.value("a"), args.value("b"))?,
        Op::SymNot => Value::bool(!truth(args.value("a"))?),
        Op::SymIte => {
            let name = if truth(args.value("b"))? { "t" } else { "f" };
            args.value(name).clone()
        }
        Op::MakeSize => Value::sequence(args.ints("values")?.into_iter().map(Value::int)),
        Op::MakeDevice => Value::Device,
        _ => match (args.dtype("type1"), args.dtype("type2")) {
            (Some(a), Some(b)) => Value::Dtype(a.promote(b)),
            _ => bail!(DType, "promote_types takes two dtypes"),
        },
    })
}

fn convert(args: &Args<'_>) -> Result<Value> {
    let number = args.number("a")?;
    let whole = matches!(number, Scalar::Int(_) | Scalar::Bool(_));
    if whole && !matches!(args.op, Op::SymFloat | Op::SymSqrt) {
        return Ok(Value::int(number.to_i64()));
    }
    let float = number.to_f64();
    let to_int = |value: f64| -> Result<Value> {
        ensure!(value.is_finite(), Arithmetic, "cannot convert float {value} to integer");
        ensure!(value.abs() < 9.2e18, Arithmetic, "a Python integer left the range of 64 bits");
        Ok(Value::int(value as i64))
    };
    match args.op {
        Op::SymFloat => Ok(Value::float(float)),
        Op::SymSqrt => {
            ensure!(float >= 0.0, Arithmetic, "math domain error");
            Ok(Value::float(float.sqrt()))
        }
        Op::SymInt => to_int(float.trunc()),
        Op::MathCeil => to_int(float.ceil()),
        Op::MathFloor => to_int(float.floor()),
        _ => match args.optional_int("ndigits")? {
            None => to_int(float.round_ties_even()),
            Some(digits) => {
                let scale = 10f64.powi(digits.clamp(-300, 300) as i32);
                Ok(Value::float((float * scale).round_ties_even() / scale))
            }
        },
    }
}
