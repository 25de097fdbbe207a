//! When two literals of a call mean the same.

use passnet_graph::ops::{Bound, Class, Op, ParamType, Value};
use passnet_graph::{Arg, Graph};

/// Parameters that change neither values nor shapes, or that other checks look after.
pub(super) fn is_irrelevant(parameter: &str) -> bool {
    matches!(parameter, "_stacklevel" | "cudnn_enable" | "cudnn_enabled" | "inplace")
}

/// Whether two literals without nodes are interchangeable as this parameter of this operation.
pub(super) fn same_literal(a: &Arg, b: &Arg, ty: ParamType, op: Option<Op>) -> bool {
    match (a, b) {
        (Arg::Float(x), Arg::Float(y)) => x.to_bits() == y.to_bits() || (x.is_nan() && y.is_nan()),
        (Arg::Int(x), Arg::Int(y)) => x == y,
        (
            Arg::Bool(_) | Arg::Int(_) | Arg::Float(_),
            Arg::Bool(_) | Arg::Int(_) | Arg::Float(_),
        ) => {
            // `x * 2` and `x * 2.0` differ for integer tensors; `eps=1` and `eps=1.0` never do.
            let kind_matters = matches!(ty, ParamType::Scalar | ParamType::Any);
            let same_kind = std::mem::discriminant(a) == std::mem::discriminant(b);
            (same_kind || !kind_matters) && a.as_float() == b.as_float()
        }
        (Arg::Tuple(x) | Arg::List(x), Arg::Tuple(y) | Arg::List(y)) => {
            x.len() == y.len() && x.iter().zip(y).all(|(x, y)| same_literal(x, y, ty, op))
        }
        (single @ Arg::Int(_), Arg::Tuple(items) | Arg::List(items))
        | (Arg::Tuple(items) | Arg::List(items), single @ Arg::Int(_)) => {
            matches!(ty, ParamType::Ints | ParamType::Any) && stands_for_all(single, items, op)
        }
        (Arg::Slice(x), Arg::Slice(y)) => {
            x.iter().zip(y.iter()).all(|(x, y)| same_literal(x, y, ParamType::Int, op))
        }
        _ => a == b,
    }
}

/// `stride=2` and `stride=(2, 2)` are the same to a convolution; `dim=1` and `dim=(1,)` to a reduction.
fn stands_for_all(single: &Arg, items: &[Arg], op: Option<Op>) -> bool {
    let repeats = op.is_some_and(|op| {
        matches!(op.class(), Class::Contraction | Class::Pooling | Class::Resampling)
    });
    match items {
        [only] => only.as_int() == single.as_int(),
        items => {
            repeats
                && !items.is_empty()
                && items.iter().all(|item| item.as_int() == single.as_int())
        }
    }
}

/// The two operands of a call whose exchange changes no bit of the result, unless they are sequences. With
/// `also_extremes`, `maximum` and `minimum` are among them: which of two zeros they return depends on the order.
pub(super) fn exchangeable<'b>(bound: &Bound<'b>, also_extremes: bool) -> Option<[&'b Arg; 2]> {
    let commutes = match bound.op {
        Op::Add => bound.arg("alpha").as_float() == Some(1.0),
        Op::Mul
        | Op::BitwiseAnd
        | Op::BitwiseOr
        | Op::BitwiseXor
        | Op::LogicalAnd
        | Op::LogicalOr
        | Op::LogicalXor
        | Op::Eq
        | Op::Ne => true,
        Op::Maximum | Op::Minimum => also_extremes,
        _ => false,
    };
    // What is written in place is the first operand.
    if !commutes || bound.mutated().is_some() {
        return None;
    }
    match bound.values[..] {
        [Value::Given(first), Value::Given(second), ..] => Some([first, second]),
        _ => None,
    }
}

/// Whether operands are joined: `(2, 3) + x.shape`.
pub(super) fn joins(graph: &Graph, operands: [&Arg; 2]) -> bool {
    operands.iter().any(|operand| is_sequence(graph, operand, 0))
}

/// Whether an operand is a list of sizes, or a text.
fn is_sequence(graph: &Graph, operand: &Arg, depth: usize) -> bool {
    /// A chain of slices and sums longer than this is taken for a list.
    const MAX_DEPTH: usize = 8;
    let call = match operand {
        Arg::Tuple(_) | Arg::List(_) | Arg::Str(_) | Arg::Slice(_) => return true,
        Arg::Node(id) => graph.call(*id),
        _ => None,
    };
    let Some(bound) = call.and_then(|call| call.bind().ok()) else { return false };
    let inner = |index: usize| match bound.values.get(index) {
        Some(Value::Given(arg)) => depth >= MAX_DEPTH || is_sequence(graph, arg, depth + 1),
        _ => false,
    };
    match bound.op {
        Op::Shape | Op::MakeSize => true,
        Op::Size => bound.values.get(1).is_none_or(|dim| !matches!(dim, Value::Given(_))),
        Op::GetItem => {
            let by_slice = matches!(bound.values.get(1), Some(Value::Given(Arg::Slice(_))));
            by_slice && inner(0)
        }
        Op::Add | Op::Mul => inner(0) || inner(1),
        _ => false,
    }
}
