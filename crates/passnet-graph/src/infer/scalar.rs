//! Python numbers and sequences, and what tensors say about themselves.

use super::args::Args;
use super::dim::Dim;
use super::problem::{Inferred, Problem};
use super::strides;
use super::value::{Scalar, Value};
use crate::dtype::{DType, Device};
use crate::ops::Op;
use crate::ops::python::{self, NoFloat};

/// Longest sequence that `[x] * n` and `a + b` may build.
const MAX_ITEMS: usize = 4096;

/// An operation on two values none of which is a tensor; `None` when one is.
pub(super) fn python_binary(
    args: &Args,
    op: Op,
    left: &Value,
    right: &Value,
) -> Inferred<Option<Value>> {
    match (left, right) {
        (Value::Scalar(a), Value::Scalar(b)) => numbers(args, op, a, b).map(Some),
        (Value::Sequence(items), Value::Scalar(count))
        | (Value::Scalar(count), Value::Sequence(items))
            if op == Op::Mul =>
        {
            let count = count
                .as_dim()
                .ok_or_else(|| Problem::invalid("a sequence is repeated by an int"))?
                .size;
            let count = usize::try_from(count.max(0)).unwrap_or(usize::MAX);
            if items.len().saturating_mul(count) > MAX_ITEMS
                || items.iter().any(|item| matches!(item, Value::Sequence(_)))
            {
                return Err(Problem::unknown("the repeated sequence is too long"));
            }
            let repeated = (0..count).flat_map(|_| items.iter().cloned()).collect();
            Ok(Some(Value::Sequence(repeated)))
        }
        (Value::Sequence(a), Value::Sequence(b)) => match op {
            Op::Add if a.len() + b.len() <= MAX_ITEMS => {
                Ok(Some(Value::Sequence(a.iter().chain(b).cloned().collect())))
            }
            Op::Eq => Ok(Some(Value::bool(a == b))),
            Op::Ne => Ok(Some(Value::bool(a != b))),
            _ => Err(unsupported(op, left, right)),
        },
        (Value::Tensor(_), Value::Tensor(_) | Value::Scalar(_))
        | (Value::Scalar(_), Value::Tensor(_)) => Ok(None),
        _ => match op {
            Op::Eq => Ok(Some(Value::bool(left == right))),
            Op::Ne => Ok(Some(Value::bool(left != right))),
            _ => Err(unsupported(op, left, right)),
        },
    }
}

fn unsupported(op: Op, left: &Value, right: &Value) -> Problem {
    Problem::invalid(format!(
        "unsupported operand type(s) for {}: '{}' and '{}'",
        op.name(),
        left.type_name(),
        right.type_name()
    ))
}

fn numbers(args: &Args, op: Op, left: &Scalar, right: &Scalar) -> Inferred<Value> {
    if let Some(value) = compare(args, op, left, right) {
        return Ok(Value::Scalar(Scalar::Bool(value)));
    }
    let is_float =
        matches!(left, Scalar::Float(_)) || matches!(right, Scalar::Float(_)) || op == Op::Div;
    if is_float {
        let value = match (left.as_f64(), right.as_f64()) {
            (Some(a), Some(b)) => Some(float_arithmetic(op, a, b)?),
            _ => None,
        };
        return Ok(Value::Scalar(Scalar::Float(value)));
    }
    let (Some(a), Some(b)) = (left.as_dim(), right.as_dim()) else {
        return Ok(Value::Scalar(Scalar::Int(None)));
    };
    let value = match op {
        Op::Add => a.add(&b)?,
        Op::Sub => a.sub(&b)?,
        Op::Rsub => b.sub(&a)?,
        Op::Mul => a.mul(&b)?,
        Op::FloorDivide => a.floor_div(&b)?,
        Op::Remainder => a.modulo(&b)?,
        Op::Pow => return power(&a, &b),
        Op::Maximum => a.max(&b)?,
        Op::Minimum => a.min(&b)?,
        Op::BitwiseAnd | Op::BitwiseOr | Op::BitwiseXor => {
            let bits = match op {
                Op::BitwiseAnd => a.size & b.size,
                Op::BitwiseOr => a.size | b.size,
                _ => a.size ^ b.size,
            };
            if let (Scalar::Bool(_), Scalar::Bool(_)) = (left, right) {
                return Ok(Value::bool(bits != 0));
            }
            Dim::fixed(bits)
        }
        Op::LeftShift | Op::RightShift => {
            let by = u32::try_from(b.size)
                .ok()
                .filter(|by| *by < 63)
                .ok_or_else(|| Problem::invalid("shift count out of range"))?;
            if op == Op::LeftShift { a.scaled(1 << by)? } else { a.divided(1 << by)? }
        }
        _ => {
            return Err(Problem::invalid(format!("{} needs a tensor", op.name())));
        }
    };
    Ok(Value::dim(value))
}

fn compare(args: &Args, op: Op, left: &Scalar, right: &Scalar) -> Option<Option<bool>> {
    // Nothing but a comparison notes that sizes are equal.
    python::holds(op, None)?;
    let ordering = match (left.as_dim(), right.as_dim()) {
        (Some(a), Some(b)) => {
            if a.size == b.size {
                args.scope.same(&a, &b);
            }
            Some(a.size.cmp(&b.size))
        }
        _ => match (left.as_f64(), right.as_f64()) {
            (Some(a), Some(b)) => a.partial_cmp(&b),
            _ => return Some(None),
        },
    };
    Some(python::holds(op, ordering))
}

fn float_arithmetic(op: Op, a: f64, b: f64) -> Inferred<f64> {
    python::floats(op, a, b).map_err(|reason| match reason {
        NoFloat::DivisionByZero => Problem::invalid("float division by zero"),
        NoFloat::Undefined => Problem::invalid(format!("{} is not defined for floats", op.name())),
    })
}

fn power(base: &Dim, exponent: &Dim) -> Inferred<Value> {
    if exponent.size < 0 {
        return Ok(Value::float((base.size as f64).powi(exponent.size.max(-4096) as i32)));
    }
    if exponent.size > 64 && !(-1..=1).contains(&base.size) {
        return Err(Problem::invalid("a size overflows 64 bits"));
    }
    let mut result = Dim::fixed(1);
    for _ in 0..exponent.size.min(66) {
        result = result.mul(base)?;
    }
    if exponent.size > 66 && base.size == -1 && exponent.size % 2 != 0 {
        result = Dim::fixed(-1);
    }
    Ok(Value::dim(result))
}

/// `-n`, `+n`, `abs(n)`, `~n` on Python numbers.
pub(super) fn python_unary(op: Op, value: &Value) -> Inferred<Value> {
    let Value::Scalar(number) = value else {
        return Err(Problem::invalid(format!(
            "bad operand type for {}: '{}'",
            op.name(),
            value.type_name()
        )));
    };
    if let Scalar::Float(number) = number {
        return match op {
            Op::Neg => Ok(Value::Scalar(Scalar::Float(number.map(|v| -v)))),
            Op::Positive => Ok(value.clone()),
            Op::Abs => Ok(Value::Scalar(Scalar::Float(number.map(f64::abs)))),
            _ => Err(Problem::invalid(format!("bad operand type for {}: 'float'", op.name()))),
        };
    }
    let Some(dim) = number.as_dim() else { return Ok(Value::Scalar(Scalar::Int(None))) };
    let result = match op {
        Op::Neg => Dim::fixed(0).sub(&dim)?,
        Op::Positive => dim,
        Op::Abs if dim.size < 0 => Dim::fixed(0).sub(&dim)?,
        Op::Abs => dim,
        Op::BitwiseNot => Dim::fixed(-1).sub(&dim)?,
        _ => {
            return Err(Problem::invalid(format!("{} needs a tensor", op.name())));
        }
    };
    Ok(Value::dim(result))
}

/// What a tensor says about itself.
pub(super) fn property(args: &Args) -> Inferred<Value> {
    let input = args.first_tensor()?;
    let dims = |dims: &[Dim]| Value::Sequence(dims.iter().cloned().map(Value::dim).collect());
    Ok(match args.op() {
        Op::Item => return item(args),
        Op::ToList => return list(args),
        Op::Size => match args.optional_int("dim")? {
            Some(axis) => {
                let axis = super::args::wrap_axis(axis.size, input.rank())?;
                Value::dim(dim_at(&input.shape, axis)?)
            }
            None => dims(&input.shape),
        },
        Op::Shape => dims(&input.shape),
        Op::Numel => Value::dim(strides::product(&input.shape)?),
        Op::Dim => Value::int(input.rank() as i64),
        Op::Stride => match args.optional_int("dim")? {
            Some(axis) => {
                let axis = super::args::wrap_axis(axis.size, input.rank())?;
                Value::int(input.strides.get(axis).copied().unwrap_or(1))
            }
            None => Value::Sequence(input.strides.iter().map(|s| Value::int(*s)).collect()),
        },
        Op::StorageOffset => Value::int(input.offset),
        Op::DeviceOf => Value::Device(None),
        Op::DtypeOf => Value::Dtype(input.dtype),
        _ => match args.text("memory_format")?.as_deref() {
            Some(format) if format.contains("channels_last") => {
                Value::bool(strides::is_channels_last(&input.shape, &input.strides))
            }
            _ => Value::bool(input.is_contiguous()),
        },
    })
}

pub(super) fn dim_at(shape: &[Dim], axis: usize) -> Inferred<Dim> {
    shape
        .get(axis)
        .cloned()
        .ok_or_else(|| Problem::invalid("Dimension specified as 0 but tensor has no dimensions"))
}

fn item(args: &Args) -> Inferred<Value> {
    let input = args.first_tensor()?;
    if input.elements() != 1 {
        return Err(Problem::invalid(format!(
            "a Tensor with {} elements cannot be converted to Scalar",
            input.elements()
        )));
    }
    number_of(input.dtype, args.scope.known_scalar(input))
}

/// An element as a Python number.
fn number_of(dtype: DType, value: Option<f64>) -> Inferred<Value> {
    Ok(Value::Scalar(match dtype {
        DType::Bool => Scalar::Bool(value.map(|v| v != 0.0)),
        dtype if dtype.is_integer() => Scalar::Int(value.map(|v| Dim::fixed(v as i64))),
        dtype if dtype.is_complex() => {
            return Err(Problem::unknown("complex numbers are not followed"));
        }
        _ => Scalar::Float(value),
    }))
}

/// The elements as nested lists of numbers.
fn list(args: &Args) -> Inferred<Value> {
    let input = args.first_tensor()?;
    // Also of nothing there can be many lists.
    let lists = input.shape.iter().fold(1, |all: i64, dim| all.saturating_mul(dim.size.max(1)));
    let lists = usize::try_from(lists).unwrap_or(usize::MAX);
    if lists > MAX_ITEMS {
        return Err(Problem::unknown("a list of so many numbers is not followed"));
    }
    let values: Vec<Option<f64>> = match args.scope.known_elements(input) {
        Some(elements) => elements.into_iter().map(Some).collect(),
        None => vec![None; lists],
    };
    let numbers = values.into_iter().map(|value| number_of(input.dtype, value));
    let numbers = numbers.collect::<Inferred<Vec<_>>>()?;
    Ok(nested(&input.shape, &mut numbers.into_iter()))
}

fn nested(shape: &[Dim], numbers: &mut std::vec::IntoIter<Value>) -> Value {
    match shape {
        [] => numbers.next().unwrap_or_else(|| Value::Sequence(Vec::new())),
        [outer, inner @ ..] => {
            Value::Sequence((0..outer.size).map(|_| nested(inner, numbers)).collect())
        }
    }
}

/// Functions of Python numbers.
pub(super) fn number(args: &Args) -> Inferred<Value> {
    match args.op() {
        Op::SymSum => {
            let mut sum = Dim::fixed(0);
            for term in &args.ints("args")? {
                sum = sum.add(term)?;
            }
            Ok(Value::dim(sum))
        }
        Op::MakeSize => {
            Ok(Value::Sequence(args.ints("values")?.into_iter().map(Value::dim).collect()))
        }
        Op::MakeDevice => Ok(Value::Device(match &*args.value("type")? {
            Value::Device(device) => *device,
            Value::Str(name) => Device::from_name(name),
            _ => None,
        })),
        Op::PromoteTypes => match (args.dtype("type1")?, args.dtype("type2")?) {
            (Some(a), Some(b)) => Ok(Value::Dtype(a.promote(b))),
            _ => Err(Problem::invalid("promote_types takes two dtypes")),
        },
        Op::SymMax | Op::SymMin => {
            let op = if args.op() == Op::SymMax { Op::Maximum } else { Op::Minimum };
            let (a, b) = (args.value("a")?, args.value("b")?);
            python_binary(args, op, &a, &b)?
                .ok_or_else(|| Problem::invalid("max and min of Python take numbers here"))
        }
        Op::SymNot => Ok(Value::bool(!args.flag("a")?)),
        Op::SymIte => {
            let name = if args.flag("b")? { "t" } else { "f" };
            args.value(name).map(|value| value.into_owned())
        }
        op => convert(args, op),
    }
}

fn convert(args: &Args, op: Op) -> Inferred<Value> {
    let value = args.value("a")?;
    let number = match &*value {
        Value::Scalar(number) => number.clone(),
        Value::Tensor(_) => match item(args)? {
            Value::Scalar(number) => number,
            other => return Ok(other),
        },
        other => {
            return Err(Problem::invalid(format!("expected a number, not {}", other.type_name())));
        }
    };
    if let Scalar::Int(_) | Scalar::Bool(_) = &number
        && !matches!(op, Op::SymFloat | Op::SymSqrt)
    {
        return Ok(Value::Scalar(Scalar::Int(number.as_dim())));
    }
    let float = number.as_f64();
    Ok(Value::Scalar(match op {
        Op::SymFloat => Scalar::Float(float),
        Op::SymSqrt => Scalar::Float(float.map(f64::sqrt)),
        Op::SymInt => Scalar::Int(float.map(|v| Dim::fixed(v.trunc() as i64))),
        Op::MathCeil => Scalar::Int(float.map(|v| Dim::fixed(v.ceil() as i64))),
        Op::MathFloor => Scalar::Int(float.map(|v| Dim::fixed(v.floor() as i64))),
        _ => match args.optional_int("ndigits")? {
            None => Scalar::Int(float.map(|v| Dim::fixed(v.round_ties_even() as i64))),
            Some(digits) => Scalar::Float(float.map(|v| {
                let scale = 10f64.powi(digits.size.clamp(-300, 300) as i32);
                (v * scale).round_ties_even() / scale
            })),
        },
    }))
}
