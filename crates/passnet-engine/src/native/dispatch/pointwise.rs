//! One result element from the elements at the same place.

use super::{Args, OpFunction, python};
use crate::engine::{Precision, Value};
use crate::native::error::{Result, bail, ensure};
use crate::native::ops::pointwise::{self, Binary, Bitwise, Comparison, Logical, Unary};
use crate::native::tensor::{Arg, Scalar, Tensor, promote};
use passnet_graph::DType;
use passnet_graph::ops::Op;

pub(super) fn function_of(op: Op) -> Option<OpFunction> {
    Some(match op {
        Op::Add | Op::Sub | Op::Rsub | Op::Mul | Op::Div | Op::FloorDivide => arithmetic,
        Op::Remainder | Op::Fmod | Op::Pow | Op::FloatPower => arithmetic,
        Op::Maximum | Op::Minimum | Op::Atan2 | Op::Xlogy | Op::Hypot => arithmetic,
        Op::Copysign | Op::Heaviside | Op::Logaddexp | Op::Logaddexp2 => arithmetic,
        Op::Deg2rad | Op::Rad2deg => degrees,
        Op::BitwiseAnd | Op::BitwiseOr | Op::BitwiseXor | Op::LeftShift | Op::RightShift => bits,
        Op::Eq | Op::Ne | Op::Lt | Op::Le | Op::Gt | Op::Ge => compare,
        Op::LogicalAnd | Op::LogicalOr | Op::LogicalXor => logical,
        Op::IsClose => is_close,
        Op::Addcmul | Op::Addcdiv | Op::Lerp => three,
        Op::Clamp | Op::ClampMin | Op::ClampMax => clamp,
        Op::Where | Op::WhereMethod => select,
        Op::MaskedFill => masked_fill,
        Op::Neg | Op::Abs => sign,
        Op::Positive => positive,
        Op::BitwiseNot => invert,
        Op::LogicalNot | Op::IsNan | Op::IsInf | Op::IsFinite => question,
        Op::NanToNum => nan_to_num,
        Op::Round => round,
        Op::Prelu => prelu,
        op if plain(op).is_some() => simple,
        Op::Logit | Op::Hardtanh | Op::LeakyRelu | Op::Elu | Op::Celu | Op::Selu | Op::Gelu => {
            activation
        }
        Op::Softplus | Op::Hardshrink | Op::Softshrink | Op::Threshold => activation,
        _ => return None,
    })
}

/// Functions of one number without parameters.
pub(super) fn plain(op: Op) -> Option<Unary> {
    Some(match op {
        Op::Neg => Unary::Neg,
        Op::Abs => Unary::Abs,
        Op::Sign => Unary::Sign,
        Op::Ceil => Unary::Ceil,
        Op::Floor => Unary::Floor,
        Op::Round => Unary::Round,
        Op::Trunc => Unary::Trunc,
        Op::Frac => Unary::Frac,
        Op::Exp => Unary::Exp,
        Op::Exp2 => Unary::Exp2,
        Op::Expm1 => Unary::Expm1,
        Op::Log => Unary::Log,
        Op::Log2 => Unary::Log2,
        Op::Log10 => Unary::Log10,
        Op::Log1p => Unary::Log1p,
        Op::Sqrt => Unary::Sqrt,
        Op::Rsqrt => Unary::Rsqrt,
        Op::Square => Unary::Square,
        Op::Reciprocal => Unary::Reciprocal,
        Op::Sin => Unary::Sin,
        Op::Cos => Unary::Cos,
        Op::Tan => Unary::Tan,
        Op::Asin => Unary::Asin,
        Op::Acos => Unary::Acos,
        Op::Atan => Unary::Atan,
        Op::Sinh => Unary::Sinh,
        Op::Cosh => Unary::Cosh,
        Op::Tanh => Unary::Tanh,
        Op::Erf => Unary::Erf,
        Op::Erfc => Unary::Erfc,
        Op::Erfinv => Unary::Erfinv,
        Op::Sigmoid => Unary::Sigmoid,
        Op::Relu => Unary::Relu,
        Op::Relu6 => Unary::Relu6,
        Op::Silu => Unary::Silu,
        Op::Mish => Unary::Mish,
        Op::Hardswish => Unary::Hardswish,
        Op::Hardsigmoid => Unary::Hardsigmoid,
        Op::Softsign => Unary::Softsign,
        Op::Tanhshrink => Unary::Tanhshrink,
        Op::Asinh => Unary::Asinh,
        Op::Acosh => Unary::Acosh,
        Op::Atanh => Unary::Atanh,
        Op::Sinc => Unary::Sinc,
        Op::Lgamma => Unary::Lgamma,
        Op::Digamma => Unary::Digamma,
        Op::BesselI0 => Unary::BesselI0,
        Op::LogSigmoid => Unary::LogSigmoid,
        _ => return None,
    })
}

fn simple(args: &Args<'_>) -> Result<Value> {
    match plain(args.op) {
        Some(op) => apply(args, op),
        None => bail!(Unsupported, "`{}` is not supported yet", args.op.name()),
    }
}

/// Applies a function, into the input's own memory where the spelling asks for it or nothing needs the input again.
fn apply(args: &Args<'_>, op: Unary) -> Result<Value> {
    let input = args.input()?;
    if args.in_place {
        args.wrote.set(true);
        pointwise::unary_in_place(op, input)?;
        return Ok(input.clone().into());
    }
    if args.may_reuse_input() && input.dtype().is_float() && !args.has_out() {
        pointwise::unary_in_place(op, input)?;
        return Ok(input.clone().into());
    }
    Ok(pointwise::unary(op, &widened(args, input)?)?.into())
}

/// In double precision an integer becomes float64, not float32, where a function needs floats.
fn widened(args: &Args<'_>, input: &Tensor) -> Result<Tensor> {
    let whole_results = matches!(
        args.op,
        Op::Neg
            | Op::Abs
            | Op::Sign
            | Op::Ceil
            | Op::Floor
            | Op::Round
            | Op::Trunc
            | Op::Square
            | Op::Relu
            | Op::Relu6
            | Op::Hardtanh
            | Op::Threshold
    );
    let keeps = args.context.precision == Precision::AsWritten
        || input.dtype().is_float()
        || input.dtype().is_complex()
        || whole_results;
    if keeps { Ok(input.clone()) } else { input.to_dtype(DType::Float64) }
}

fn activation(args: &Args<'_>) -> Result<Value> {
    apply(args, activation_function(args)?)
}

/// The function an activation with parameters is.
pub(super) fn activation_function(args: &Args<'_>) -> Result<Unary> {
    Ok(match args.op {
        Op::Logit => Unary::Logit { eps: args.optional_float("eps")? },
        Op::Hardtanh => {
            Unary::Hardtanh { min: args.float("min_val")?, max: args.float("max_val")? }
        }
        Op::LeakyRelu => Unary::LeakyRelu { slope: args.float("negative_slope")? },
        Op::Elu => Unary::Elu { alpha: args.float("alpha")?, scale: 1.0, input_scale: 1.0 },
        Op::Celu => {
            let alpha = args.float("alpha")?;
            ensure!(alpha != 0.0, Value, "ZeroDivisionError: alpha cannot be 0 for CELU");
            Unary::Elu { alpha, scale: 1.0, input_scale: 1.0 / alpha }
        }
        Op::Selu => Unary::Elu {
            alpha: 1.673_263_242_354_377_2,
            scale: 1.050_700_987_355_480_5,
            input_scale: 1.0,
        },
        Op::Gelu => match args.text("approximate") {
            Some("tanh") => Unary::GeluTanh,
            Some("none") | None => Unary::Gelu,
            Some(other) => {
                bail!(Value, "approximate argument must be either none or tanh, got {other}")
            }
        },
        Op::Softplus => {
            Unary::Softplus { beta: args.float("beta")?, threshold: args.float("threshold")? }
        }
        Op::Hardshrink => Unary::Hardshrink { lambda: args.float("lambd")? },
        Op::Softshrink => Unary::Softshrink { lambda: args.float("lambd")? },
        _ => Unary::Threshold { threshold: args.float("threshold")?, value: args.float("value")? },
    })
}

fn degrees(args: &Args<'_>) -> Result<Value> {
    let half_turn = std::f64::consts::PI / 180.0;
    let factor = if args.op == Op::Deg2rad { half_turn } else { 180.0 / std::f64::consts::PI };
    let input = widened(args, args.input()?)?;
    Ok(pointwise::mul(&input.into(), &factor.into())?.into())
}

fn sign(args: &Args<'_>) -> Result<Value> {
    match args.first() {
        Value::Tensor(_) => simple(args),
        other => python::unary(args.op, other),
    }
}

fn positive(args: &Args<'_>) -> Result<Value> {
    match args.first() {
        Value::Tensor(tensor) => Ok(tensor.clone().into()),
        other => python::unary(args.op, other),
    }
}

fn invert(args: &Args<'_>) -> Result<Value> {
    match args.first() {
        Value::Tensor(tensor) => Ok(pointwise::bitwise_not(tensor)?.into()),
        other => python::unary(args.op, other),
    }
}

fn round(args: &Args<'_>) -> Result<Value> {
    let decimals = args.int("decimals")?;
    if decimals == 0 {
        return apply(args, Unary::Round);
    }
    let scale = 10f64.powi(decimals.unsigned_abs().min(300) as i32);
    let (up, down) =
        if decimals > 0 { (Binary::Mul, Binary::Div) } else { (Binary::Div, Binary::Mul) };
    let scaled = pointwise::binary(up, &args.input()?.into(), &scale.into())?;
    let rounded = pointwise::unary(Unary::Round, &scaled)?;
    Ok(pointwise::binary(down, &rounded.into(), &scale.into())?.into())
}

/// The function a binary operation of the table is. The operands of `rsub` come in the other order.
pub(super) fn arithmetic_function(args: &Args<'_>) -> Result<Binary> {
    let alpha = match args.value("alpha") {
        Value::None => 1.0,
        _ => args.float("alpha")?,
    };
    Ok(match args.op {
        Op::Add => Binary::Add { alpha },
        Op::Sub | Op::Rsub => Binary::Add { alpha: -alpha },
        Op::Mul => Binary::Mul,
        Op::Div => match args.text("rounding_mode") {
            None => Binary::Div,
            Some("floor") => Binary::FloorDivide,
            Some("trunc") => Binary::TruncDivide,
            Some(other) => bail!(
                Value,
                "div expected rounding_mode to be one of None, 'trunc', or 'floor' but found '{other}'"
            ),
        },
        Op::FloorDivide => Binary::FloorDivide,
        Op::Remainder => Binary::Remainder,
        Op::Fmod => Binary::Fmod,
        Op::Maximum => Binary::Maximum,
        Op::Minimum => Binary::Minimum,
        Op::Atan2 => Binary::Atan2,
        Op::Xlogy => Binary::Xlogy,
        Op::Hypot => Binary::Hypot,
        Op::Copysign => Binary::Copysign,
        Op::Heaviside => Binary::Heaviside,
        Op::Logaddexp => Binary::LogAddExp,
        Op::Logaddexp2 => Binary::LogAddExp2,
        _ => Binary::Pow,
    })
}

fn arithmetic(args: &Args<'_>) -> Result<Value> {
    let (left, right) = pair(args);
    // Python's own operators do not round: this is `torch.div`, which makes a tensor of numbers.
    let rounds = args.text("rounding_mode").is_some();
    if is_python(left) && is_python(right) && !rounds {
        return python::binary(args.op, left, right);
    }
    let spare = args.may_reuse_input();
    let (mut a, mut b) = (operand(left)?, operand(right)?);
    let op = arithmetic_function(args)?;
    match args.op {
        Op::Rsub => std::mem::swap(&mut a, &mut b),
        Op::FloatPower => {
            a = a.to_tensor()?.to_dtype(DType::Float64)?.into();
            b = b.to_tensor()?.to_dtype(DType::Float64)?.into();
        }
        _ => {}
    }
    if args.in_place
        && let Arg::Tensor(target) = &a
    {
        args.wrote.set(true);
        pointwise::binary_in_place(op, target, &b)?;
        return Ok(target.clone().into());
    }
    if args.context.precision == Precision::Double
        && matches!(op, Binary::Div | Binary::Atan2 | Binary::Xlogy | Binary::Copysign)
    {
        a = double(a)?;
    }
    if spare
        && reusable(args, &a, &b)
        && let Arg::Tensor(target) = &a
    {
        pointwise::binary_in_place(op, target, &b)?;
        return Ok(target.clone().into());
    }
    Ok(pointwise::binary(op, &a, &b)?.into())
}

fn double(arg: Arg) -> Result<Arg> {
    match arg {
        Arg::Tensor(tensor) if !tensor.dtype().is_complex() => {
            Ok(tensor.to_dtype(DType::Float64)?.into())
        }
        other => Ok(other),
    }
}

/// Whether the result has the first operand's type and shape, so that it may take its place.
fn reusable(args: &Args<'_>, a: &Arg, b: &Arg) -> bool {
    let Arg::Tensor(target) = a else { return false };
    let same_shape = match b {
        Arg::Tensor(other) => {
            other.ndim() <= target.ndim()
                && !other.shares_storage(target)
                && fits(other.shape(), target.shape())
        }
        Arg::Scalar(_) => true,
    };
    let is_first = matches!(args.first(), Value::Tensor(first) if first.shares_storage(target));
    is_first
        && same_shape
        && !args.has_out()
        && target.dtype().is_float()
        && promote::result_type([a, b]) == target.dtype()
}

/// Whether a shape broadcasts to another without enlarging it.
fn fits(shape: &[usize], to: &[usize]) -> bool {
    shape.iter().rev().zip(to.iter().rev()).all(|(own, to)| own == to || *own == 1)
}

fn pair<'a>(args: &'a Args<'_>) -> (&'a Value, &'a Value) {
    let second = args.values.get(1).map_or(&Value::None, |value| value.as_ref());
    (args.first(), second)
}

fn is_python(value: &Value) -> bool {
    !matches!(value, Value::Tensor(_))
}

fn operand(value: &Value) -> Result<Arg> {
    super::args::as_operand("other", value)
}

fn bits(args: &Args<'_>) -> Result<Value> {
    let (left, right) = pair(args);
    if is_python(left) && is_python(right) {
        return python::binary(args.op, left, right);
    }
    let op = match args.op {
        Op::BitwiseAnd => Bitwise::And,
        Op::BitwiseOr => Bitwise::Or,
        Op::BitwiseXor => Bitwise::Xor,
        Op::LeftShift => Bitwise::ShiftLeft,
        _ => Bitwise::ShiftRight,
    };
    Ok(pointwise::bitwise(op, &operand(left)?, &operand(right)?)?.into())
}

fn compare(args: &Args<'_>) -> Result<Value> {
    let (left, right) = pair(args);
    let numeric = |value: &Value| matches!(value, Value::Tensor(_) | Value::Number(_));
    if (is_python(left) && is_python(right)) || !numeric(left) || !numeric(right) {
        return python::binary(args.op, left, right);
    }
    let op = match args.op {
        Op::Eq => Comparison::Eq,
        Op::Ne => Comparison::Ne,
        Op::Lt => Comparison::Lt,
        Op::Le => Comparison::Le,
        Op::Gt => Comparison::Gt,
        _ => Comparison::Ge,
    };
    Ok(pointwise::compare(op, &operand(left)?, &operand(right)?)?.into())
}

fn logical(args: &Args<'_>) -> Result<Value> {
    let op = match args.op {
        Op::LogicalAnd => Logical::And,
        Op::LogicalOr => Logical::Or,
        _ => Logical::Xor,
    };
    Ok(pointwise::logical(op, &args.operand("input")?, &args.operand("other")?)?.into())
}

fn is_close(args: &Args<'_>) -> Result<Value> {
    let (a, b) = (args.tensor("input")?.into(), args.tensor("other")?.into());
    let (rtol, atol) = (args.float("rtol")?, args.float("atol")?);
    let equal = pointwise::compare(Comparison::Eq, &a, &b)?;
    let distance = pointwise::unary(Unary::Abs, &pointwise::sub(&a, &b, Scalar::Int(1))?)?;
    let size = pointwise::unary(Unary::Abs, args.tensor("other")?)?;
    let allowed = pointwise::add(
        &pointwise::mul(&size.into(), &rtol.into())?.into(),
        &atol.into(),
        Scalar::Int(1),
    )?;
    let near = pointwise::compare(Comparison::Le, &distance.clone().into(), &allowed.into())?;
    let near =
        pointwise::logical(Logical::And, &near.into(), &pointwise::isfinite(&distance)?.into())?;
    let mut close = pointwise::logical(Logical::Or, &equal.into(), &near.into())?;
    if args.flag("equal_nan")? {
        let (left, right) = (pointwise::isnan(args.tensor("input")?)?, args.tensor("other")?);
        let both =
            pointwise::logical(Logical::And, &left.into(), &pointwise::isnan(right)?.into())?;
        close = pointwise::logical(Logical::Or, &close.into(), &both.into())?;
    }
    Ok(close.into())
}

fn three(args: &Args<'_>) -> Result<Value> {
    let input = args.tensor("input")?;
    Ok(match args.op {
        Op::Lerp => pointwise::lerp(input, args.tensor("end")?, &args.operand("weight")?)?,
        op => {
            let (a, b) = (args.tensor("tensor1")?, args.tensor("tensor2")?);
            let value = args.number("value")?;
            let function = if op == Op::Addcmul { pointwise::addcmul } else { pointwise::addcdiv };
            function(input, a, b, value)?
        }
    }
    .into())
}

fn clamp(args: &Args<'_>) -> Result<Value> {
    let (min, max) = (args.optional_operand("min")?, args.optional_operand("max")?);
    Ok(pointwise::clamp(args.tensor("input")?, min.as_ref(), max.as_ref())?.into())
}

fn select(args: &Args<'_>) -> Result<Value> {
    let condition = args.tensor("condition")?;
    Ok(pointwise::where_select(condition, &args.operand("input")?, &args.operand("other")?)?.into())
}

fn masked_fill(args: &Args<'_>) -> Result<Value> {
    let (input, mask) = (args.tensor("input")?, args.tensor("mask")?);
    let filled = pointwise::masked_fill(input, mask, &args.operand("value")?)?;
    Ok(filled.into())
}

fn question(args: &Args<'_>) -> Result<Value> {
    let input = args.tensor("input")?;
    Ok(match args.op {
        Op::LogicalNot => pointwise::logical_not(input)?,
        Op::IsNan => pointwise::isnan(input)?,
        Op::IsInf => pointwise::isinf(input)?,
        _ => pointwise::isfinite(input)?,
    }
    .into())
}

fn nan_to_num(args: &Args<'_>) -> Result<Value> {
    let (nan, high, low) = (
        args.optional_float("nan")?,
        args.optional_float("posinf")?,
        args.optional_float("neginf")?,
    );
    Ok(pointwise::nan_to_num(args.tensor("input")?, nan, high, low)?.into())
}

fn prelu(args: &Args<'_>) -> Result<Value> {
    let (input, weight) = (args.tensor("input")?, args.tensor("weight")?);
    let weight = if weight.numel() > 1 && input.ndim() > 1 {
        let mut shape = vec![1i64; input.ndim()];
        shape[1] = weight.numel() as i64;
        weight.reshape(&shape)?
    } else {
        weight.reshape(&[])?.clone()
    };
    Ok(pointwise::binary(Binary::Prelu, &input.into(), &weight.into())?.into())
}
