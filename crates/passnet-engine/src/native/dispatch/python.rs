//! Operators on Python numbers and sequences.

use crate::engine::Value;
use crate::native::error::{Result, TensorError, bail, ensure, err};
use crate::native::tensor::Scalar;
use passnet_graph::ops::Op;
use passnet_graph::ops::python::{self, NoFloat};

/// Longest sequence that `[x] * n` and `a + b` may build.
const MAX_ITEMS: usize = 1 << 16;

/// An operator on two values none of which is a tensor.
pub(crate) fn binary(op: Op, left: &Value, right: &Value) -> Result<Value> {
    match (left, right) {
        (Value::Number(a), Value::Number(b)) => numbers(op, *a, *b).map(Value::Number),
        (Value::Sequence(items), Value::Number(count))
        | (Value::Number(count), Value::Sequence(items))
            if op == Op::Mul =>
        {
            let count = count.to_i64().max(0) as usize;
            let long = items.len().saturating_mul(count) > MAX_ITEMS;
            ensure!(!long, Value, "the repeated sequence is too long");
            Ok(Value::sequence((0..count).flat_map(|_| items.iter().cloned())))
        }
        (Value::Sequence(a), Value::Sequence(b)) if op == Op::Add => {
            ensure!(a.len() + b.len() <= MAX_ITEMS, Value, "the joined sequence is too long");
            Ok(Value::sequence(a.iter().chain(b.iter()).cloned()))
        }
        _ => match op {
            Op::Eq => Ok(Value::bool(same(left, right))),
            Op::Ne => Ok(Value::bool(!same(left, right))),
            _ => Err(unsupported(op, left, right)),
        },
    }
}

fn unsupported(op: Op, left: &Value, right: &Value) -> TensorError {
    err!(
        DType,
        "unsupported operand type(s) for {}: '{}' and '{}'",
        op.name(),
        left.type_name(),
        right.type_name()
    )
}

/// Python's `==` of values that are no tensors.
fn same(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Number(a), Value::Number(b)) => a.to_f64() == b.to_f64(),
        (Value::Sequence(a), Value::Sequence(b)) => {
            a.len() == b.len() && a.iter().zip(b.iter()).all(|(a, b)| same(a, b))
        }
        (Value::Text(a), Value::Text(b)) | (Value::Constant(a), Value::Constant(b)) => a == b,
        (Value::Dtype(a), Value::Dtype(b)) => a == b,
        (Value::None, Value::None) | (Value::Device, Value::Device) => true,
        _ => false,
    }
}

fn overflow() -> TensorError {
    TensorError::Arithmetic("a Python integer left the range of 64 bits".into())
}

fn numbers(op: Op, left: Scalar, right: Scalar) -> Result<Scalar> {
    if let Some(result) = compare(op, left, right) {
        return Ok(Scalar::Bool(result));
    }
    let is_float = |number: Scalar| matches!(number, Scalar::Float(_));
    if is_float(left) || is_float(right) || op == Op::Div || op == Op::FloatPower {
        return floats(op, left.to_f64(), right.to_f64()).map(Scalar::Float);
    }
    let (a, b) = (left.to_i64(), right.to_i64());
    let divides = matches!(op, Op::FloorDivide | Op::Remainder);
    ensure!(!divides || b != 0, Arithmetic, "integer division or modulo by zero");
    let result = match op {
        Op::Add => a.checked_add(b),
        Op::Sub => a.checked_sub(b),
        Op::Rsub => b.checked_sub(a),
        Op::Mul => a.checked_mul(b),
        Op::FloorDivide => a
            .checked_div(b)
            .map(|quotient| quotient - i64::from(a.wrapping_rem(b) != 0 && (a < 0) != (b < 0))),
        Op::Remainder => a
            .checked_rem(b)
            .map(|rest| if rest != 0 && (rest < 0) != (b < 0) { rest + b } else { rest }),
        Op::Pow if b < 0 => return floats(op, a as f64, b as f64).map(Scalar::Float),
        Op::Pow => u32::try_from(b).ok().and_then(|b| a.checked_pow(b)),
        Op::Maximum | Op::SymMax => Some(a.max(b)),
        Op::Minimum | Op::SymMin => Some(a.min(b)),
        Op::BitwiseAnd | Op::BitwiseOr | Op::BitwiseXor => {
            let bits = match op {
                Op::BitwiseAnd => a & b,
                Op::BitwiseOr => a | b,
                _ => a ^ b,
            };
            if let (Scalar::Bool(_), Scalar::Bool(_)) = (left, right) {
                return Ok(Scalar::Bool(bits != 0));
            }
            Some(bits)
        }
        Op::LeftShift => u32::try_from(b)
            .ok()
            .filter(|by| *by < 63 && a.unsigned_abs().leading_zeros() > *by)
            .map(|by| a << by),
        Op::RightShift => u32::try_from(b).ok().map(|by| a >> by.min(63)),
        _ => bail!(DType, "{} needs a tensor", op.name()),
    };
    result.map(Scalar::Int).ok_or_else(overflow)
}

fn compare(op: Op, left: Scalar, right: Scalar) -> Option<bool> {
    let ordering = match (left, right) {
        (Scalar::Float(_), _) | (_, Scalar::Float(_)) => left.to_f64().partial_cmp(&right.to_f64()),
        _ => Some(left.to_i64().cmp(&right.to_i64())),
    };
    python::holds(op, ordering)
}

fn floats(op: Op, a: f64, b: f64) -> Result<f64> {
    python::floats(op, a, b).map_err(|reason| match reason {
        NoFloat::DivisionByZero => err!(Arithmetic, "float division by zero"),
        NoFloat::Undefined => err!(DType, "{} is not defined for floats", op.name()),
    })
}

/// `-n`, `+n`, `abs(n)`, `~n`.
pub(crate) fn unary(op: Op, value: &Value) -> Result<Value> {
    let bad = || err!(DType, "bad operand type for {}: '{}'", op.name(), value.type_name());
    let Value::Number(number) = value else { return Err(bad()) };
    if let Scalar::Float(number) = *number {
        return Ok(Value::float(match op {
            Op::Neg => -number,
            Op::Positive => number,
            Op::Abs => number.abs(),
            _ => return Err(bad()),
        }));
    }
    let number = number.to_i64();
    let result = match op {
        Op::Neg => number.checked_neg(),
        Op::Positive => Some(number),
        Op::Abs => number.checked_abs(),
        Op::BitwiseNot => Some(!number),
        _ => return Err(bad()),
    };
    result.map(Value::int).ok_or_else(overflow)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn int(op: Op, a: i64, b: i64) -> Result<Scalar> {
        match binary(op, &Value::int(a), &Value::int(b))? {
            Value::Number(number) => Ok(number),
            other => bail!(DType, "{other:?}"),
        }
    }

    #[test]
    fn integers_divide_as_python_divides() {
        for (a, b, quotient, rest) in
            [(7, 2, 3, 1), (-7, 2, -4, 1), (7, -2, -4, -1), (-7, -2, 3, -1)]
        {
            assert_eq!(int(Op::FloorDivide, a, b), Ok(Scalar::Int(quotient)), "{a} // {b}");
            assert_eq!(int(Op::Remainder, a, b), Ok(Scalar::Int(rest)), "{a} % {b}");
        }
        assert_eq!(int(Op::Div, 7, 2), Ok(Scalar::Float(3.5)));
        assert_eq!(int(Op::Pow, 2, -1), Ok(Scalar::Float(0.5)));
    }

    #[test]
    fn what_python_refuses_or_cannot_be_held_is_an_error() {
        assert!(matches!(int(Op::FloorDivide, 1, 0), Err(TensorError::Arithmetic(_))));
        assert!(matches!(int(Op::Mul, i64::MAX, 2), Err(TensorError::Arithmetic(_))));
        assert!(matches!(int(Op::FloorDivide, i64::MIN, -1), Err(TensorError::Arithmetic(_))));
        assert!(matches!(int(Op::LeftShift, 1, 63), Err(TensorError::Arithmetic(_))));
        assert!(binary(Op::Add, &Value::None, &Value::int(1)).is_err());
    }
}
