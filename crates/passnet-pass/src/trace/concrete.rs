//! Python's arithmetic on numbers, strings and sequences that are known while tracing.

use super::value::{MAX_ITEMS, Value};
use passnet_graph::Arg;
use passnet_graph::syntax::arithmetic::{self, NoResult, Number};
use passnet_graph::syntax::ast;

/// Python's truth of a value; `None` if a graph node decides it.
pub(super) fn truth(value: &Value<'_>) -> Option<bool> {
    Some(match value {
        Value::Arg(Arg::Node(_)) => return None,
        Value::Arg(Arg::None) => false,
        Value::Arg(Arg::Bool(value)) => *value,
        Value::Arg(Arg::Int(value)) => *value != 0,
        Value::Arg(Arg::Float(value)) => *value != 0.0,
        Value::Arg(Arg::Str(value)) => !value.is_empty(),
        Value::Sequence { items, .. } => !items.is_empty(),
        Value::Dict(items) => !items.is_empty(),
        _ => true,
    })
}

/// Python's `==` on values without nodes.
pub(super) fn equal(a: &Value<'_>, b: &Value<'_>) -> bool {
    match (a, b) {
        (Value::Arg(a), Value::Arg(b)) => match (a.as_float(), b.as_float()) {
            (Some(a), Some(b)) => a == b,
            _ => a == b,
        },
        (
            Value::Sequence { items: a, is_list: a_list },
            Value::Sequence { items: b, is_list: b_list },
        ) => a_list == b_list && a.len() == b.len() && a.iter().zip(b).all(|(a, b)| equal(a, b)),
        (Value::Path(a), Value::Path(b)) => a == b,
        _ => false,
    }
}

/// `a op b`, or why it cannot be computed.
pub(super) fn binary<'a>(
    op: ast::Operator,
    a: &Value<'a>,
    b: &Value<'a>,
) -> Result<Value<'a>, &'static str> {
    use ast::Operator;
    match (op, a, b) {
        (Operator::Add, Value::Arg(Arg::Str(a)), Value::Arg(Arg::Str(b))) => {
            Ok(Value::Arg(Arg::Str(format!("{a}{b}").into())))
        }
        (
            Operator::Add,
            Value::Sequence { items: a, is_list },
            Value::Sequence { items: b, is_list: other },
        ) if is_list == other => {
            Ok(Value::Sequence { items: a.iter().chain(b).cloned().collect(), is_list: *is_list })
        }
        (Operator::Mult, Value::Sequence { items, is_list }, Value::Arg(count))
        | (Operator::Mult, Value::Arg(count), Value::Sequence { items, is_list }) => {
            let count = count.as_int().ok_or("a sequence can be repeated by an integer only")?;
            let count = usize::try_from(count).unwrap_or(0);
            if items.len().saturating_mul(count) > MAX_ITEMS {
                return Err("the sequence becomes too long");
            }
            let items = items.iter().cloned().cycle().take(items.len() * count).collect();
            Ok(Value::Sequence { items, is_list: *is_list })
        }
        (_, Value::Arg(a), Value::Arg(b)) => number(op, a, b).map(Value::Arg),
        _ => Err("these values cannot be combined"),
    }
}

fn number(op: ast::Operator, a: &Arg, b: &Arg) -> Result<Arg, &'static str> {
    let result = match (a.as_int(), b.as_int(), a.as_float(), b.as_float()) {
        (Some(x), Some(y), ..) => arithmetic::integers(op, x.into(), y.into()),
        (_, _, Some(x), Some(y)) => arithmetic::floats(op, x, y).map(Number::Float),
        _ => return Err("these values cannot be combined"),
    };
    let fits = |number| match number {
        Number::Int(value) => i64::try_from(value).map(Arg::Int).map_err(|_| NoResult::TooLarge),
        Number::Float(value) => Ok(Arg::Float(value)),
    };
    result.and_then(fits).map_err(|none| match none {
        NoResult::TooLarge => "the result does not fit in 64 bits",
        NoResult::DivisionByZero => "division by zero",
        NoResult::NegativeShift | NoResult::Unsupported => "these numbers have no such operator",
    })
}

/// `a op b` for a comparison; `None` where Python would complain.
pub(super) fn compare(op: ast::CmpOp, a: &Value<'_>, b: &Value<'_>) -> Option<bool> {
    use ast::CmpOp;
    match op {
        CmpOp::Eq => return Some(equal(a, b)),
        CmpOp::NotEq => return Some(!equal(a, b)),
        CmpOp::Is => return Some(equal(a, b)),
        CmpOp::IsNot => return Some(!equal(a, b)),
        CmpOp::In | CmpOp::NotIn => {
            let found = match b {
                Value::Sequence { items, .. } => items.iter().any(|item| equal(item, a)),
                Value::Dict(items) => items.iter().any(|(key, _)| equal(key, a)),
                _ => return None,
            };
            return Some(found == (op == CmpOp::In));
        }
        _ => {}
    }
    let (Value::Arg(a), Value::Arg(b)) = (a, b) else { return None };
    let order = match (a, b) {
        (Arg::Str(a), Arg::Str(b)) => a.cmp(b),
        _ => a.as_float()?.partial_cmp(&b.as_float()?)?,
    };
    Some(match op {
        CmpOp::Lt => order.is_lt(),
        CmpOp::LtE => order.is_le(),
        CmpOp::Gt => order.is_gt(),
        CmpOp::GtE => order.is_ge(),
        _ => return None,
    })
}
