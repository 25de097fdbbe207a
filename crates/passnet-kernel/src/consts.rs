//! Values known at compile time, and Python's arithmetic on them.

use crate::types::Elem;
use passnet_graph::syntax::arithmetic::{self, NoResult, Number};
use passnet_graph::syntax::ast::{CmpOp, Operator, UnaryOp};
use serde::{Deserialize, Serialize};
use std::fmt;

/// A compile-time value: a `tl.constexpr` argument, a literal, a constant of a module.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Const {
    /// Python's `None`.
    None,
    /// A truth, which counts as 0 or 1 in arithmetic.
    Bool(bool),
    /// An integer; what needs more bits is refused.
    Int(i64),
    /// An integer beyond 64 bits, as `1 << 63`: Python's arithmetic may bring it back (`-(1 << 63)`); nothing else takes it.
    Wide(#[serde(with = "wide_text")] i128),
    /// A float, written as text where JSON has no number for it.
    Float(#[serde(with = "float_text")] f64),
    /// A text.
    Str(String),
    /// An element type such as `tl.float32`.
    Elem(Elem),
    /// A pointer type such as `tl.pointer_type(tl.float32)`.
    Pointer(Elem),
    /// Constants in order.
    Tuple(Vec<Const>),
    /// A `@triton.jit` function of the pass: the index of its file and its name there.
    Function(usize, String),
}

/// Floats in plans, infinities and NaN included: JSON has no numbers for those, so they are written as text.
pub(crate) mod float_text {
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    #[derive(Serialize, Deserialize)]
    #[serde(untagged)]
    enum Written {
        Number(f64),
        Text(String),
    }

    pub(crate) fn serialize<S: Serializer>(value: &f64, to: S) -> Result<S::Ok, S::Error> {
        match value.is_finite() {
            true => Written::Number(*value).serialize(to),
            false => Written::Text(value.to_string()).serialize(to),
        }
    }

    pub(crate) fn deserialize<'d, D: Deserializer<'d>>(from: D) -> Result<f64, D::Error> {
        match Written::deserialize(from)? {
            Written::Number(value) => Ok(value),
            Written::Text(text) => match text.as_str() {
                "inf" => Ok(f64::INFINITY),
                "-inf" => Ok(f64::NEG_INFINITY),
                "NaN" => Ok(f64::NAN),
                _ => Err(D::Error::custom(format!("`{text}` is no number"))),
            },
        }
    }
}

/// Integers in plans that JSON's readers would take for floats.
mod wide_text {
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(value: &i128, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(value)
    }

    pub(super) fn deserialize<'d, D: Deserializer<'d>>(from: D) -> Result<i128, D::Error> {
        let text = String::deserialize(from)?;
        text.parse().map_err(|_| D::Error::custom(format!("`{text}` is no integer")))
    }
}

impl Const {
    pub(crate) fn truthy(&self) -> bool {
        match self {
            Const::None => false,
            Const::Bool(b) => *b,
            Const::Int(i) => *i != 0,
            Const::Float(f) => *f != 0.0,
            Const::Str(s) => !s.is_empty(),
            Const::Wide(_) | Const::Elem(_) | Const::Pointer(_) | Const::Function(..) => true,
            Const::Tuple(items) => !items.is_empty(),
        }
    }

    /// An integer or a truth.
    pub fn as_int(&self) -> Option<i64> {
        match self {
            Const::Int(i) => Some(*i),
            Const::Bool(b) => Some(i64::from(*b)),
            _ => None,
        }
    }

    /// The integer, whatever its size.
    fn as_wide(&self) -> Option<i128> {
        match self {
            Const::Wide(i) => Some(*i),
            other => other.as_int().map(i128::from),
        }
    }

    /// Any number as a float.
    pub fn as_float(&self) -> Option<f64> {
        match self {
            Const::Float(f) => Some(*f),
            other => other.as_int().map(|i| i as f64),
        }
    }

    /// As Python calls the type.
    pub fn type_name(&self) -> &'static str {
        match self {
            Const::None => "None",
            Const::Bool(_) => "bool",
            Const::Int(_) | Const::Wide(_) => "int",
            Const::Float(_) => "float",
            Const::Str(_) => "str",
            Const::Elem(_) | Const::Pointer(_) => "dtype",
            Const::Function(..) => "function",
            Const::Tuple(_) => "tuple",
        }
    }
}

impl fmt::Display for Const {
    /// As Python's `str` shows it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Const::None => f.write_str("None"),
            Const::Bool(true) => f.write_str("True"),
            Const::Bool(false) => f.write_str("False"),
            Const::Int(i) => write!(f, "{i}"),
            Const::Wide(i) => write!(f, "{i}"),
            Const::Float(v) => write!(f, "{v:?}"),
            Const::Str(s) => f.write_str(s),
            Const::Elem(e) => f.write_str(e.name()),
            Const::Pointer(e) => write!(f, "pointer<{e}>"),
            Const::Function(_, name) => f.write_str(name),
            Const::Tuple(items) => {
                let items: Vec<String> = items.iter().map(ToString::to_string).collect();
                write!(f, "({}{})", items.join(", "), if items.len() == 1 { "," } else { "" })
            }
        }
    }
}

/// The operator as written.
pub(crate) fn operator_text(op: Operator) -> &'static str {
    op.as_str()
}

fn overflow() -> String {
    "integer does not fit in 64 bits".into()
}

/// `a op b` with Python's rules; the error says what is wrong.
pub(crate) fn binary(op: Operator, a: &Const, b: &Const) -> Result<Const, String> {
    let unsupported = || {
        let (a, b) = (a.type_name(), b.type_name());
        format!("unsupported operands for `{}`: {a} and {b}", operator_text(op))
    };
    let reason = |none: NoResult| match none {
        NoResult::TooLarge => overflow(),
        NoResult::DivisionByZero => "division by zero".into(),
        NoResult::NegativeShift => "negative shift count".into(),
        NoResult::Unsupported => unsupported(),
    };
    let is_bitwise = matches!(op, Operator::BitAnd | Operator::BitOr | Operator::BitXor);
    if let (Some(x), Some(y)) = (a.as_wide(), b.as_wide()) {
        return arithmetic::integers(op, x, y).map_err(reason).map(|number| match (number, a, b) {
            (Number::Int(i), Const::Bool(_), Const::Bool(_)) if is_bitwise => Const::Bool(i != 0),
            (Number::Int(i), ..) => int(i),
            (Number::Float(f), ..) => Const::Float(f),
        });
    }
    if let (Some(x), Some(y)) = (a.as_float(), b.as_float()) {
        return arithmetic::floats(op, x, y).map(Const::Float).map_err(reason);
    }
    match (op, a, b) {
        (Operator::Add, Const::Str(x), Const::Str(y)) if x.len() + y.len() < 1 << 16 => {
            Ok(Const::Str(format!("{x}{y}")))
        }
        (Operator::Add, Const::Tuple(x), Const::Tuple(y)) if x.len() + y.len() < 1 << 16 => {
            Ok(Const::Tuple(x.iter().chain(y).cloned().collect()))
        }
        (Operator::Mult, Const::Tuple(x), Const::Int(n))
        | (Operator::Mult, Const::Int(n), Const::Tuple(x)) => {
            let n = usize::try_from(*n).unwrap_or(0);
            if x.len().saturating_mul(n) > 1 << 16 {
                return Err("sequence is too long".into());
            }
            Ok(Const::Tuple(x.iter().cycle().take(x.len() * n).cloned().collect()))
        }
        _ => Err(unsupported()),
    }
}

/// An integer in the form of its size.
fn int(value: i128) -> Const {
    i64::try_from(value).map_or(Const::Wide(value), Const::Int)
}

pub(crate) fn unary(op: UnaryOp, a: &Const) -> Result<Const, String> {
    match (op, a) {
        (UnaryOp::Not, a) => Ok(Const::Bool(!a.truthy())),
        (UnaryOp::USub, Const::Float(f)) => Ok(Const::Float(-f)),
        (UnaryOp::UAdd, Const::Float(f)) => Ok(Const::Float(*f)),
        (_, a) => match (op, a.as_wide()) {
            (UnaryOp::USub, Some(i)) => i.checked_neg().map(int).ok_or_else(overflow),
            (UnaryOp::UAdd, Some(i)) => Ok(int(i)),
            (UnaryOp::Invert, Some(i)) => Ok(int(!i)),
            _ => Err(format!("unsupported operand for unary operator: {}", a.type_name())),
        },
    }
}

/// Python's `==`: numbers compare by value across types.
pub(crate) fn equal(a: &Const, b: &Const) -> bool {
    match (a, b) {
        (Const::Tuple(x), Const::Tuple(y)) => {
            x.len() == y.len() && x.iter().zip(y).all(|(x, y)| equal(x, y))
        }
        _ => match (a.as_wide(), b.as_wide(), a.as_float(), b.as_float()) {
            (Some(x), Some(y), ..) => x == y,
            (_, _, Some(x), Some(y)) => x == y,
            _ => a == b,
        },
    }
}

pub(crate) fn compare(op: CmpOp, a: &Const, b: &Const) -> Result<bool, String> {
    use std::cmp::Ordering;
    let order = || -> Result<Option<Ordering>, String> {
        match (a, b) {
            (Const::Str(x), Const::Str(y)) => Ok(Some(x.cmp(y))),
            _ => match (a.as_wide(), b.as_wide(), a.as_float(), b.as_float()) {
                (Some(x), Some(y), ..) => Ok(Some(x.cmp(&y))),
                (_, _, Some(x), Some(y)) => Ok(x.partial_cmp(&y)),
                _ => Err(format!("cannot order {} and {}", a.type_name(), b.type_name())),
            },
        }
    };
    let contains = || match b {
        Const::Tuple(items) => Ok(items.iter().any(|i| equal(a, i))),
        Const::Str(text) => match a {
            Const::Str(part) => Ok(text.contains(part.as_str())),
            _ => Err("`in <str>` takes a string".to_string()),
        },
        _ => Err(format!("`in` takes a sequence, not {}", b.type_name())),
    };
    Ok(match op {
        CmpOp::Eq => equal(a, b),
        CmpOp::NotEq => !equal(a, b),
        CmpOp::Is => a.type_name() == b.type_name() && equal(a, b),
        CmpOp::IsNot => !(a.type_name() == b.type_name() && equal(a, b)),
        CmpOp::Lt => order()? == Some(Ordering::Less),
        CmpOp::LtE => matches!(order()?, Some(Ordering::Less | Ordering::Equal)),
        CmpOp::Gt => order()? == Some(Ordering::Greater),
        CmpOp::GtE => matches!(order()?, Some(Ordering::Greater | Ordering::Equal)),
        CmpOp::In => contains()?,
        CmpOp::NotIn => !contains()?,
    })
}

/// `triton.next_power_of_2`: 0 below 1, as there; at most 2^62.
pub(crate) fn next_power_of_2(n: i64) -> i64 {
    if n < 1 { 0 } else { n.min(1 << 62).cast_unsigned().next_power_of_two().cast_signed() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arithmetic_may_leave_64_bits_and_come_back() {
        let one = Const::Int(1);
        let shifted = binary(Operator::LShift, &one, &Const::Int(63)).unwrap();
        assert_eq!(shifted, Const::Wide(1 << 63));
        assert_eq!(shifted.as_int(), None, "no argument takes it");
        assert_eq!(unary(UnaryOp::USub, &shifted).unwrap(), Const::Int(i64::MIN));
        assert_eq!(binary(Operator::Sub, &shifted, &one).unwrap(), Const::Int(i64::MAX));
        let power = binary(Operator::Pow, &Const::Int(2), &Const::Int(64)).unwrap();
        assert_eq!(binary(Operator::RShift, &power, &Const::Int(60)).unwrap(), Const::Int(16));
        assert!(compare(CmpOp::Gt, &power, &shifted).unwrap() && !equal(&power, &shifted));
        let text = serde_json::to_string(&power).unwrap();
        assert_eq!(serde_json::from_str::<Const>(&text).unwrap(), power);
    }

    #[test]
    fn what_no_word_holds_is_refused() {
        let ten = Const::Int(10);
        for (op, count) in [(Operator::Pow, 100), (Operator::LShift, 127), (Operator::LShift, 500)]
        {
            assert!(binary(op, &ten, &Const::Int(count)).is_err(), "{op:?} {count}");
        }
        let most = Const::Wide(i128::MIN);
        assert!(unary(UnaryOp::USub, &most).is_err());
        assert!(binary(Operator::FloorDiv, &most, &Const::Int(-1)).is_err());
    }
}
