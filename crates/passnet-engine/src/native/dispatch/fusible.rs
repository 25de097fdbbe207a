//! Which calls may become links of a chain: what they compute is known before any tensor is.

use super::{Args, pointwise};
use crate::engine::Value;
use crate::native::ops::pointwise::{Binary, Unary};
use crate::native::tensor::Scalar;
use passnet_graph::ops::Op;

/// What a call is to a chain of elementwise functions.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Fusible {
    Unary(Unary),
    /// A power by a number.
    Power(Scalar),
    Binary(Binary),
    /// Batch normalisation by given statistics.
    BatchNorm,
    /// The result is the first argument itself.
    Same,
}

/// How a call may join a chain. Arguments that are known only when the graph runs are given as `Value::Object`.
pub(crate) fn classify(args: &Args<'_>) -> Option<Fusible> {
    let unknown = |value: &Value| matches!(value, Value::Object);
    if args.has_out() || !unknown(args.first()) && !starts_with_number(args) {
        return None;
    }
    match args.op {
        Op::Round => (args.int("decimals").ok()? == 0).then_some(Fusible::Unary(Unary::Round)),
        Op::Logit
        | Op::Hardtanh
        | Op::LeakyRelu
        | Op::Elu
        | Op::Celu
        | Op::Selu
        | Op::Gelu
        | Op::Softplus
        | Op::Hardshrink
        | Op::Softshrink
        | Op::Threshold => pointwise::activation_function(args).ok().map(Fusible::Unary),
        Op::Add | Op::Sub | Op::Rsub | Op::Mul | Op::Div | Op::Maximum | Op::Minimum => {
            if unknown(args.value("alpha")) || unknown(args.value("rounding_mode")) {
                return None;
            }
            pointwise::arithmetic_function(args).ok().map(Fusible::Binary)
        }
        Op::Pow => match args.values.get(1).map(|value| &**value) {
            Some(Value::Number(exponent)) if unknown(args.first()) => {
                Some(Fusible::Power(*exponent))
            }
            _ => None,
        },
        Op::Dropout | Op::Dropout1d | Op::Dropout2d | Op::Dropout3d => {
            let name = if args.has("training") { "training" } else { "train" };
            let idle = matches!(args.value(name), Value::Number(flag) if flag.is_zero());
            let p = args.float("p").ok()?;
            (idle && (0.0..=1.0).contains(&p)).then_some(Fusible::Same)
        }
        Op::BatchNorm => {
            let idle = matches!(args.value("training"), Value::Number(flag) if flag.is_zero());
            let known =
                ["running_mean", "running_var"].iter().all(|name| unknown(args.value(name)));
            let number = matches!(args.value("eps"), Value::Number(_));
            (idle && known && number).then_some(Fusible::BatchNorm)
        }
        op => pointwise::plain(op).map(Fusible::Unary),
    }
}

/// `1 - x`: a number first, something unknown second.
fn starts_with_number(args: &Args<'_>) -> bool {
    let second = args.values.get(1).map(|value| &**value);
    matches!(args.first(), Value::Number(_)) && matches!(second, Some(Value::Object))
}
