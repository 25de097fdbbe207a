//! One result element from the elements at the same place: promotion, broadcasting, common layout.

use super::args::{Args, as_operand};
use super::problem::{Inferred, Problem};
use super::promote::{Operand, message_name, result_type, to_float};
use super::value::{Scalar, TensorType, Value};
use super::{scalar, strides};
use crate::dtype::{DType, Kind};
use crate::ops::Op;
use smallvec::SmallVec;
use std::borrow::Cow;

/// A tensor over the broadcast of the operands, with the layout torch's loops give it.
pub(super) fn elementwise(
    args: &Args,
    dtype: DType,
    operands: &[&TensorType],
) -> Inferred<TensorType> {
    let shape = args.scope.broadcast(operands.iter().map(|tensor| tensor.shape.as_slice()))?;
    let layouts: SmallVec<[(&[_], &[i64]); 4]> =
        operands.iter().map(|tensor| (tensor.shape.as_slice(), &tensor.strides[..])).collect();
    let strides = strides::elementwise(&shape, &layouts);
    Ok(TensorType::strided(dtype, shape, strides))
}

/// Like [`elementwise`] for tensors and numbers: a number is an operand without dimensions.
fn over(args: &Args, dtype: DType, operands: &[Operand]) -> Inferred<Value> {
    let number = TensorType::strided(dtype, SmallVec::new(), SmallVec::new());
    let tensors: SmallVec<[&TensorType; 4]> =
        operands.iter().map(|operand| operand.tensor().unwrap_or(&number)).collect();
    elementwise(args, dtype, &tensors).map(Value::Tensor)
}

pub(super) fn binary(args: &Args) -> Inferred<Value> {
    let op = args.op();
    let [first, second] = first_two(args)?;
    // Python's own operators do not round: this is `torch.div`, which makes a tensor of numbers.
    let rounds = !args.bound.arg("rounding_mode").is_none();
    if !rounds && let Some(value) = scalar::python_binary(args, op, &first, &second)? {
        return Ok(value);
    }
    let (left, right) = (as_operand(&first)?, as_operand(&second)?);
    let operands = [left, right];
    let promoted = result_type(&operands);
    let dtype = match op {
        Op::Add | Op::Sub | Op::Rsub => {
            check_sum(args, op, &operands, promoted)?;
            promoted
        }
        Op::Div => match args.text("rounding_mode")?.as_deref() {
            None => to_float(promoted),
            Some("trunc" | "floor") => promoted,
            Some(other) => {
                return Err(Problem::invalid(format!(
                    "div expected rounding_mode to be one of None, 'trunc', or 'floor' but found '{other}'"
                )));
            }
        },
        Op::Atan2 | Op::Xlogy | Op::Copysign => to_float(promoted),
        Op::Hypot | Op::Logaddexp | Op::Logaddexp2 if promoted.kind() < Kind::Float => {
            return Err(not_implemented(op.name(), promoted));
        }
        Op::Heaviside if operands[0].dtype() != operands[1].dtype() => {
            return Err(Problem::invalid(
                "heaviside is not yet implemented for tensors with different dtypes.",
            ));
        }
        Op::FloatPower => match promoted.kind() {
            Kind::Complex => DType::Complex128,
            _ => DType::Float64,
        },
        Op::Pow => {
            check_power(&operands, promoted)?;
            promoted
        }
        Op::BitwiseAnd | Op::BitwiseOr | Op::BitwiseXor | Op::LeftShift | Op::RightShift => {
            if promoted.kind() > Kind::Integer {
                return Err(not_implemented("bitwise operations", promoted));
            }
            promoted
        }
        Op::Maximum | Op::Minimum if promoted.is_complex() => {
            return Err(Problem::invalid(
                "maximum and minimum are not defined for complex tensors",
            ));
        }
        Op::Eq | Op::Ne | Op::Lt | Op::Le | Op::Gt | Op::Ge | Op::IsClose => DType::Bool,
        Op::LogicalAnd | Op::LogicalOr | Op::LogicalXor => DType::Bool,
        _ => promoted,
    };
    over(args, dtype, &operands)
}

/// The two leading parameters, whatever they are called.
fn first_two<'a>(args: &Args<'a, '_>) -> Inferred<[Cow<'a, Value>; 2]> {
    let params = &args.bound.signature.params;
    match params.as_slice() {
        [first, second, ..] => Ok([args.value(first.name)?, args.value(second.name)?]),
        _ => Err(Problem::invalid("it takes two arguments")),
    }
}

fn check_sum(args: &Args, op: Op, operands: &[Operand], promoted: DType) -> Inferred<()> {
    if op != Op::Add && operands.iter().any(|operand| operand.dtype() == DType::Bool) {
        let both = operands.iter().all(|operand| operand.dtype() == DType::Bool);
        return Err(Problem::invalid(if both {
            "Subtraction, the `-` operator, with two bool tensors is not supported. Use the `^` or `logical_xor()` operator instead."
        } else {
            "Subtraction, the `-` operator, with a bool tensor is not supported. If you are trying to invert a mask, use the `~` or `logical_not()` operator instead."
        }));
    }
    if let Value::Scalar(Scalar::Float(_)) = &*args.value("alpha")?
        && promoted.kind() < Kind::Float
    {
        return Err(Problem::invalid(
            "For integral input tensors, argument alpha must not be a floating point number.",
        ));
    }
    Ok(())
}

fn check_power(operands: &[Operand], promoted: DType) -> Inferred<()> {
    if let [Operand::Tensor(_), Operand::Number(Scalar::Int(Some(exponent)))] = operands
        && promoted.kind() <= Kind::Integer
        && exponent.size < 0
    {
        return Err(Problem::invalid("Integers to negative integer powers are not allowed."));
    }
    Ok(())
}

fn not_implemented(what: &str, dtype: DType) -> Problem {
    Problem::invalid(format!("{what} not implemented for '{}'", message_name(dtype)))
}

pub(super) fn unary(args: &Args) -> Inferred<Value> {
    let op = args.op();
    let value = args.value("input")?;
    let input = match &*value {
        Value::Tensor(tensor) => tensor,
        other => return scalar::python_unary(op, other),
    };
    let dtype = input.dtype;
    let result = match op {
        Op::Neg if dtype == DType::Bool => {
            return Err(Problem::invalid(
                "Negation, the `-` operator, on a bool tensor is not supported. If you are trying to invert a mask, use the `~` or `logical_not()` operator instead.",
            ));
        }
        Op::BitwiseNot if dtype.kind() > Kind::Integer => {
            return Err(Problem::invalid(
                "~ (operator.invert) is only implemented on integer and Boolean-type tensors",
            ));
        }
        Op::Positive => return Ok(Value::Tensor(input.clone())),
        Op::Abs if dtype == DType::Bool => return Err(not_implemented("abs", dtype)),
        Op::Abs => dtype.real(),
        Op::Neg | Op::Sign | Op::BitwiseNot | Op::NanToNum | Op::Round => dtype,
        Op::Ceil | Op::Floor | Op::Trunc => {
            if dtype.kind() <= Kind::Integer {
                // Whole numbers are copied as they are.
                return Ok(strides::like_tensor(input, dtype).into());
            }
            dtype
        }
        Op::Frac if dtype.kind() <= Kind::Integer => return Err(not_implemented("frac", dtype)),
        Op::Frac => dtype,
        Op::Square if dtype == DType::Bool => DType::Int64,
        Op::Square => dtype,
        Op::LogicalNot | Op::IsNan | Op::IsInf | Op::IsFinite => DType::Bool,
        _ => to_float(dtype),
    };
    Ok(elementwise(args, result, &[input])?.into())
}

/// Activations keep the dtype; most are defined on floats only.
pub(super) fn activation(args: &Args) -> Inferred<Value> {
    let input = args.first_tensor()?;
    let dtype = input.dtype;
    let allowed = match args.op() {
        Op::Relu => dtype != DType::Bool,
        Op::Relu6 | Op::Hardtanh => dtype != DType::Bool && !dtype.is_complex(),
        Op::Threshold => !dtype.is_complex(),
        Op::Softsign => true,
        _ => dtype.is_float() || (dtype.is_complex() && args.op() == Op::Silu),
    };
    if !allowed {
        return Err(not_implemented(args.op().name(), dtype));
    }
    if !matches!(args.text("approximate")?.as_deref(), None | Some("none" | "tanh")) {
        return Err(Problem::invalid("approximate argument must be either none or tanh."));
    }
    match args.op() {
        // Computed as `x / (1 + |x|)`.
        Op::Softsign => Ok(elementwise(args, to_float(dtype), &[input])?.into()),
        // Written into an `empty_like` buffer.
        Op::LogSigmoid => Ok(strides::like_tensor(input, dtype).into()),
        _ => Ok(elementwise(args, dtype, &[input])?.into()),
    }
}

pub(super) fn prelu(args: &Args) -> Inferred<Value> {
    let (input, weight) = (args.tensor("input")?, args.tensor("weight")?);
    if input.dtype != weight.dtype {
        return Err(Problem::invalid(format!(
            "prelu: Type promoting not supported. Got {} and {}",
            message_name(input.dtype),
            message_name(weight.dtype)
        )));
    }
    let channels = input.shape.get(1).map_or(1, |dim| dim.size);
    if weight.elements() != 1 && weight.elements() != channels {
        return Err(Problem::invalid(format!(
            "Mismatch of parameter numbers and input channel size. Found parameter numbers = {} and channel size = {channels}.",
            weight.elements()
        )));
    }
    Ok(elementwise(args, input.dtype, &[input])?.into())
}

/// `where`, `clamp`, `lerp`, `addcmul`: more than two operands.
pub(super) fn several(args: &Args) -> Inferred<Value> {
    let op = args.op();
    let names: &[&str] = match op {
        Op::Clamp => &["input", "min", "max"],
        Op::ClampMin => &["input", "min"],
        Op::ClampMax => &["input", "max"],
        Op::Lerp => &["input", "end", "weight"],
        Op::Addcmul | Op::Addcdiv => &["input", "tensor1", "tensor2"],
        _ => &["input", "other"],
    };
    let mut values: SmallVec<[Cow<'_, Value>; 4]> = SmallVec::new();
    for name in names {
        let value = args.value(name)?;
        if !matches!(&*value, Value::None) {
            values.push(value);
        }
    }
    let mut operands: SmallVec<[Operand; 4]> = SmallVec::new();
    for value in &values {
        operands.push(as_operand(value)?);
    }
    let mut dtype = result_type(&operands);
    match op {
        Op::Where | Op::WhereMethod => {
            let condition = args.tensor("condition")?;
            if !matches!(condition.dtype, DType::Bool | DType::UInt8) {
                return Err(Problem::invalid(format!(
                    "where expected condition to be a boolean tensor, but got a tensor with dtype {}",
                    message_name(condition.dtype)
                )));
            }
            operands.insert(0, Operand::Tensor(condition));
        }
        Op::Clamp if operands.len() == 1 => {
            return Err(Problem::invalid(
                "torch.clamp: At least one of 'min' or 'max' must not be None",
            ));
        }
        Op::Lerp => {
            let mixed = operands
                .iter()
                .filter_map(|operand| operand.tensor())
                .any(|tensor| tensor.dtype != operands[0].dtype());
            if mixed {
                return Err(Problem::invalid("lerp expects all tensors to have the same dtype"));
            }
            dtype = operands[0].dtype();
        }
        Op::Addcdiv if dtype.kind() <= Kind::Integer => {
            return Err(Problem::invalid(
                "Integer division with addcdiv is no longer supported, and in a future release addcdiv will perform a true division of tensor1 and tensor2.",
            ));
        }
        _ => {}
    }
    over(args, dtype, &operands)
}

pub(super) fn masked_fill(args: &Args) -> Inferred<Value> {
    let (input, mask) = (args.tensor("input")?, args.tensor("mask")?);
    if mask.dtype != DType::Bool {
        return Err(Problem::invalid(format!(
            "masked_fill_ only supports boolean masks, but got mask with dtype {}",
            mask.dtype
        )));
    }
    if let Value::Tensor(value) = &*args.operand("value")?
        && value.rank() > 0
    {
        return Err(Problem::invalid(format!(
            "masked_fill_ only supports a 0-dimensional value tensor, but got tensor with {} dimension(s).",
            value.rank()
        )));
    }
    let shape = args.scope.broadcast([input.shape.as_slice(), mask.shape.as_slice()])?;
    Ok(TensorType::contiguous(input.dtype, shape).into())
}
