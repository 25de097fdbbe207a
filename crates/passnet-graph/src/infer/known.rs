//! Elements that are known before anything runs: recorded data, constants, and simple arithmetic on them.
//!
//! Only small tensors are followed, and only so that sizes taken from tensors (`x.max().item()`) resolve.

use super::args::Args;
use super::scope::Scope;
use super::value::{MAX_KNOWN_ELEMENTS, TensorType, Value};
use crate::dtype::DType;
use crate::graph::Arg;
use crate::ops::Op;

/// A number as a tensor of this dtype holds it; half precision is not followed.
pub(super) fn round(dtype: DType, value: f64) -> f64 {
    match dtype {
        DType::Float32 => f64::from(value as f32),
        DType::Bool => f64::from(u8::from(value != 0.0)),
        dtype if dtype.is_integer() => value.trunc(),
        _ => value,
    }
}

/// Gives the result of a call its elements, where they follow from those of its arguments.
pub(super) fn fold(args: &Args, value: &mut Value) {
    let Value::Tensor(result) = value else { return };
    if result.memory.is_some() || result.origin != super::value::FRESH {
        return;
    }
    let followed = matches!(
        result.dtype,
        DType::Bool | DType::UInt8 | DType::Int8 | DType::Int16 | DType::Int32 | DType::Int64
    ) || matches!(result.dtype, DType::Float32 | DType::Float64);
    let small = usize::try_from(result.elements()).is_ok_and(|count| count <= MAX_KNOWN_ELEMENTS);
    if !followed || !small || !result.mapped.is_empty() || !result.is_contiguous() {
        return;
    }
    if let Some(elements) = elements(args, result)
        && elements.len() as i64 == result.elements()
        && elements.iter().all(|v| v.abs() < 9e15 || !v.is_finite())
    {
        let dtype = result.dtype;
        result.memory = Some(elements.into_iter().map(|v| round(dtype, v)).collect());
    }
}

fn elements(args: &Args, result: &TensorType) -> Option<Vec<f64>> {
    let count = result.elements() as usize;
    match args.op() {
        Op::Zeros | Op::ZerosLike | Op::NewZeros => Some(vec![0.0; count]),
        Op::Ones | Op::OnesLike | Op::NewOnes => Some(vec![1.0; count]),
        Op::Full | Op::FullLike | Op::NewFull => {
            args.number("fill_value").ok()?.map(|v| vec![v; count])
        }
        Op::Arange => {
            let start = if args.bound.has("start") { args.number("start").ok()?? } else { 0.0 };
            let step = if args.bound.has("step") { args.number("step").ok()?? } else { 1.0 };
            Some((0..count).map(|i| start + step * i as f64).collect())
        }
        Op::Tensor | Op::AsTensor | Op::ScalarTensor => {
            let name = if args.op() == Op::ScalarTensor { "s" } else { "data" };
            let mut flat = Vec::new();
            flatten(args, args.bound.arg(name), 0, &mut flat)?;
            Some(flat)
        }
        Op::Add | Op::Sub | Op::Rsub | Op::Mul | Op::Div | Op::FloorDivide | Op::Remainder => {
            binary(args, result)
        }
        Op::Eq | Op::Ne | Op::Lt | Op::Le | Op::Gt | Op::Ge => binary(args, result),
        Op::LogicalAnd | Op::LogicalOr | Op::BitwiseAnd | Op::BitwiseOr
            if result.dtype == DType::Bool =>
        {
            binary(args, result)
        }
        Op::LogicalNot => map(args, |v| f64::from(u8::from(v == 0.0))),
        Op::BitwiseNot if result.dtype == DType::Bool => map(args, |v| 1.0 - v),
        Op::Neg => map(args, |v| -v),
        Op::Abs => map(args, f64::abs),
        Op::Floor => map(args, f64::floor),
        Op::Ceil => map(args, f64::ceil),
        Op::Max | Op::Amax if result.rank() == 0 => reduce(args, f64::max),
        Op::Min | Op::Amin if result.rank() == 0 => reduce(args, f64::min),
        Op::Sum if result.rank() == 0 => reduce(args, |a, b| a + b),
        Op::Prod if result.rank() == 0 => reduce(args, |a, b| a * b),
        Op::Cumsum if result.rank() == 1 => {
            let mut total = 0.0;
            map(args, move |v| {
                total += v;
                total
            })
        }
        // Copies in row-major order.
        Op::Clone
        | Op::Contiguous
        | Op::Reshape
        | Op::Flatten
        | Op::To
        | Op::Type
        | Op::TypeAs
        | Op::Float
        | Op::Double
        | Op::Long
        | Op::Int
        | Op::Short
        | Op::Byte
        | Op::Bool => map(args, |v| v),
        Op::Cat if result.rank() == 1 => {
            let mut joined = Vec::new();
            for tensor in args.tensors("tensors").ok()? {
                joined.extend(args.scope.known_elements(tensor)?);
            }
            Some(joined)
        }
        Op::Stack if args.int("dim").ok()?.size == 0 => {
            let mut joined = Vec::new();
            for tensor in args.tensors("tensors").ok()? {
                joined.extend(args.scope.known_elements(tensor)?);
            }
            Some(joined)
        }
        _ => None,
    }
}

fn map(args: &Args, mut f: impl FnMut(f64) -> f64) -> Option<Vec<f64>> {
    let input = args.first_tensor().ok()?;
    Some(args.scope.known_elements(input)?.into_iter().map(&mut f).collect())
}

fn reduce(args: &Args, f: impl Fn(f64, f64) -> f64) -> Option<Vec<f64>> {
    let input = args.first_tensor().ok()?;
    let elements = args.scope.known_elements(input)?;
    let first = *elements.first()?;
    Some(vec![elements[1..].iter().fold(first, |a, b| f(a, *b))])
}

fn binary(args: &Args, result: &TensorType) -> Option<Vec<f64>> {
    let op = args.op();
    if args.number("alpha").ok()?.is_some_and(|a| a != 1.0) {
        return None;
    }
    let rounding = args.text("rounding_mode").ok()?;
    let left = broadcast(args.scope, args.value("input").ok()?.as_ref(), result)?;
    let right = broadcast(args.scope, args.value("other").ok()?.as_ref(), result)?;
    let truth = |value: bool| f64::from(u8::from(value));
    let pairs = left.into_iter().zip(right);
    let elements = pairs.map(|(a, b)| {
        Some(match op {
            Op::Add => a + b,
            Op::Sub => a - b,
            Op::Rsub => b - a,
            Op::Mul => a * b,
            Op::Div => match rounding.as_deref() {
                None => a / b,
                Some(_) if b == 0.0 => return None,
                Some("floor") => (a / b).floor(),
                Some(_) => (a / b).trunc(),
            },
            Op::FloorDivide if b != 0.0 => (a / b).floor(),
            Op::Remainder if b != 0.0 => a - b * (a / b).floor(),
            Op::Eq => truth(a == b),
            Op::Ne => truth(a != b),
            Op::Lt => truth(a < b),
            Op::Le => truth(a <= b),
            Op::Gt => truth(a > b),
            Op::Ge => truth(a >= b),
            Op::LogicalAnd | Op::BitwiseAnd => truth(a != 0.0 && b != 0.0),
            Op::LogicalOr | Op::BitwiseOr => truth(a != 0.0 || b != 0.0),
            _ => return None,
        })
    });
    elements.collect()
}

/// The elements of an operand at the shape of the result.
fn broadcast(scope: &Scope, value: &Value, result: &TensorType) -> Option<Vec<f64>> {
    match value {
        Value::Scalar(number) => Some(vec![number.as_f64()?; result.elements() as usize]),
        Value::Tensor(tensor) => {
            if scope.is_written(tensor) {
                return None;
            }
            let strides =
                crate::view::layout::broadcast(&result.shape, &tensor.shape, &tensor.strides);
            tensor.viewed(result.shape.clone(), strides).known_elements()
        }
        _ => None,
    }
}

/// The numbers of a nested literal; entries may be nodes.
fn flatten(args: &Args, arg: &Arg, depth: usize, into: &mut Vec<f64>) -> Option<()> {
    if depth > 16 || into.len() > MAX_KNOWN_ELEMENTS {
        return None;
    }
    match arg {
        Arg::Tuple(items) | Arg::List(items) => {
            items.iter().try_for_each(|item| flatten(args, item, depth + 1, into))
        }
        Arg::Node(id) => {
            match args.scope.value(*id) {
                Value::Scalar(number) => into.push(number.as_f64()?),
                Value::Tensor(tensor) => into.extend(args.scope.known_elements(tensor)?),
                Value::Sequence(items) => {
                    for item in items {
                        match item {
                            Value::Scalar(number) => into.push(number.as_f64()?),
                            _ => return None,
                        }
                    }
                }
                _ => return None,
            }
            Some(())
        }
        literal => {
            into.push(literal.as_float()?);
            Some(())
        }
    }
}
