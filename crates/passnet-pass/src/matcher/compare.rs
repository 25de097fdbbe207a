//! When two literals of a call mean the same.

use passnet_graph::Arg;
use passnet_graph::ops::{Class, Op, ParamType};

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

/// Operations whose first two operands can be exchanged.
pub(super) fn is_commutative(op: Op) -> bool {
    matches!(
        op,
        Op::Add
            | Op::Mul
            | Op::Maximum
            | Op::Minimum
            | Op::BitwiseAnd
            | Op::BitwiseOr
            | Op::BitwiseXor
            | Op::LogicalAnd
            | Op::LogicalOr
            | Op::LogicalXor
            | Op::Eq
            | Op::Ne
    )
}
