//! Folds over dimensions, running folds, sorting.

use super::args::{Args, wrap_axis};
use super::dim::Dim;
use super::pointwise::elementwise;
use super::problem::{Inferred, Problem};
use super::promote::{Operand, message_name, result_type};
use super::strides;
use super::value::{Shape, TensorType, Value};
use crate::dtype::{DType, Kind};
use crate::graph::Arg;
use crate::ops::Op;

type Axes = crate::view::List<usize>;

/// The shape after folding the given dimensions; none given means all.
fn folded(shape: &[Dim], axes: Option<&[usize]>, keep: bool) -> Shape {
    let is_folded = |axis: usize| axes.is_none_or(|axes| axes.contains(&axis));
    shape
        .iter()
        .enumerate()
        .filter(|(axis, _)| keep || !is_folded(*axis))
        .map(|(axis, dim)| if is_folded(axis) { Dim::fixed(1) } else { dim.clone() })
        .collect()
}

/// The `dim` parameter: `None` and, for most reductions, an empty list stand for all dimensions.
fn axes(args: &Args, rank: usize) -> Inferred<Option<Axes>> {
    if matches!(args.bound.arg("dim"), Arg::Bool(_)) {
        return Err(Problem::invalid("`dim` must be an int or a tuple of ints, not bool"));
    }
    Ok(args.axes("dim", rank)?.filter(|axes| !axes.is_empty()))
}

pub(super) fn fold(args: &Args) -> Inferred<Value> {
    let input = args.first_tensor()?;
    let op = args.op();
    let axes = axes(args, input.rank())?;
    let keep = args.flag("keepdim")?;
    let given = args.dtype("dtype")?;
    let dtype = match op {
        Op::Sum | Op::Prod | Op::NanSum => given.unwrap_or(match input.dtype.kind() {
            Kind::Bool | Kind::Integer => DType::Int64,
            _ => input.dtype,
        }),
        Op::Mean | Op::NanMean => {
            let dtype = given.unwrap_or(input.dtype);
            if dtype.kind() < Kind::Float {
                return Err(Problem::invalid(format!(
                    "mean(): could not infer output dtype. Input dtype must be either a floating point or complex dtype. Got: {}",
                    message_name(dtype)
                )));
            }
            dtype
        }
        Op::All | Op::Any if input.dtype == DType::UInt8 => DType::UInt8,
        Op::All | Op::Any => DType::Bool,
        Op::CountNonzero | Op::Argmax | Op::Argmin => DType::Int64,
        Op::Logsumexp => super::promote::to_float(input.dtype),
        _ => input.dtype,
    };
    let needs_elements = matches!(op, Op::Amax | Op::Amin | Op::Argmax | Op::Argmin);
    if needs_elements && input.elements() == 0 {
        let folds_nothing = match &axes {
            Some(axes) => {
                axes.iter().any(|axis| input.shape.get(*axis).is_some_and(|d| d.size == 0))
            }
            None => true,
        };
        if folds_nothing {
            return Err(no_elements(op));
        }
    }
    Ok(TensorType::contiguous(dtype, folded(&input.shape, axes.as_deref(), keep)).into())
}

fn no_elements(op: Op) -> Problem {
    Problem::invalid(format!(
        "{}(): Expected reduction dim to be specified for input.numel() == 0. Specify the reduction dim with the 'dim' argument.",
        op.name()
    ))
}

/// `var`, `std` and their pairs with the mean.
pub(super) fn moments(args: &Args) -> Inferred<Value> {
    let input = args.first_tensor()?;
    if input.dtype.kind() < Kind::Float {
        return Err(Problem::invalid("std and var only support floating point and complex dtypes"));
    }
    // `x.var(False)` is the overload `unbiased`.
    let is_flag = matches!(args.bound.arg("dim"), Arg::Bool(_));
    let axes = if is_flag { None } else { axes(args, input.rank())? };
    let shape = folded(&input.shape, axes.as_deref(), args.flag("keepdim")?);
    let spread = TensorType::contiguous(input.dtype.real(), shape.clone());
    Ok(match args.op() {
        Op::VarMean | Op::StdMean => {
            Value::Sequence(vec![spread.into(), TensorType::contiguous(input.dtype, shape).into()])
        }
        _ => spread.into(),
    })
}

/// `max`, `min`, `median`: of two tensors, of all elements, or values and indices along a dimension.
pub(super) fn extremum(args: &Args) -> Inferred<Value> {
    let input = args.first_tensor()?;
    let second = if args.bound.has("dim") { "dim" } else { "other" };
    let value = args.value(second)?;
    match &*value {
        Value::Tensor(other) if args.op() != Op::Median => {
            let dtype = result_type(&[Operand::Tensor(input), Operand::Tensor(other)]);
            Ok(elementwise(args, dtype, &[input, other])?.into())
        }
        Value::None => {
            if input.elements() == 0 && args.op() != Op::Median {
                return Err(no_elements(args.op()));
            }
            Ok(TensorType::contiguous(input.dtype, Shape::new()).into())
        }
        axis => {
            let axis = wrap_axis(args.as_int(axis, "dim")?.size, input.rank())?;
            let shape = folded(&input.shape, Some(&[axis]), args.flag("keepdim")?);
            if input.shape.get(axis).is_some_and(|dim| dim.size == 0) {
                return Err(no_elements(args.op()));
            }
            Ok(Value::Sequence(vec![
                TensorType::contiguous(input.dtype, shape.clone()).into(),
                TensorType::contiguous(DType::Int64, shape).into(),
            ]))
        }
    }
}

pub(super) fn norm(args: &Args) -> Inferred<Value> {
    let input = args.first_tensor()?;
    let dtype = args.dtype("dtype")?.unwrap_or(input.dtype);
    if dtype.kind() < Kind::Float {
        return Err(Problem::invalid(format!(
            "linalg.vector_norm: Expected a floating point or complex tensor as input. Got {}",
            message_name(dtype)
        )));
    }
    let axes = axes(args, input.rank())?;
    if args.op() == Op::LinalgNorm && args.bound.arg("dim").is_none() {
        let order = args.value("ord")?;
        if !matches!(*order, Value::None) && !matches!(input.rank(), 1 | 2) {
            return Err(Problem::invalid(format!(
                "linalg.norm: If dim is not specified but ord is, the input must be 1D or 2D. Got {}D.",
                input.rank()
            )));
        }
    }
    let shape = folded(&input.shape, axes.as_deref(), args.flag("keepdim")?);
    Ok(TensorType::contiguous(dtype.real(), shape).into())
}

pub(super) fn scan(args: &Args) -> Inferred<Value> {
    let input = args.first_tensor()?;
    args.axis("dim", input.rank())?;
    if matches!(args.op(), Op::Cummax | Op::Cummin) {
        return Ok(Value::Sequence(vec![
            TensorType::contiguous(input.dtype, input.shape.clone()).into(),
            TensorType::contiguous(DType::Int64, input.shape.clone()).into(),
        ]));
    }
    if args.op() == Op::Logcumsumexp && input.dtype.kind() < Kind::Float {
        return Err(Problem::invalid(format!(
            "logcumsumexp not implemented for '{}'",
            message_name(input.dtype)
        )));
    }
    let dtype = args.dtype("dtype")?.unwrap_or(match input.dtype.kind() {
        Kind::Bool | Kind::Integer if !args.bound.is_in_place() => DType::Int64,
        _ => input.dtype,
    });
    Ok(TensorType::contiguous(dtype, input.shape.clone()).into())
}

/// `topk`, `sort`, `argsort`.
pub(super) fn order(args: &Args) -> Inferred<Value> {
    let input = args.first_tensor()?;
    let axis = args.axis("dim", input.rank())?;
    if args.op() == Op::Topk {
        let count = args.int("k")?;
        let size = input.shape.get(axis).map_or(1, |dim| dim.size);
        if count.size < 0 || count.size > size {
            return Err(Problem::invalid("selected index k out of range"));
        }
        let mut shape = input.shape.clone();
        if let Some(dim) = shape.get_mut(axis) {
            *dim = count;
        }
        return Ok(Value::Sequence(vec![
            TensorType::contiguous(input.dtype, shape.clone()).into(),
            TensorType::contiguous(DType::Int64, shape).into(),
        ]));
    }
    // Sorted values keep a dense layout.
    let steps = if strides::is_dense(&input.shape, &input.strides) {
        input.strides.clone()
    } else {
        strides::contiguous(&input.shape)
    };
    let indices = TensorType::strided(DType::Int64, input.shape.clone(), steps.clone());
    if args.op() == Op::Argsort {
        return Ok(indices.into());
    }
    let values = TensorType::strided(input.dtype, input.shape.clone(), steps);
    Ok(Value::Sequence(vec![values.into(), indices.into()]))
}

/// `aminmax` and `kthvalue`: two results of one fold.
pub(super) fn pair(args: &Args) -> Inferred<Value> {
    let input = args.first_tensor()?;
    let axes = match args.optional_int("dim")? {
        Some(axis) => Some([wrap_axis(axis.size, input.rank())?]),
        None => None,
    };
    let folded_axes = axes.as_ref().map(|axes| axes.as_slice());
    let shape = folded(&input.shape, folded_axes, args.flag("keepdim")?);
    let length = match axes {
        Some([axis]) => input.shape.get(axis).map_or(1, |dim| dim.size),
        None => input.elements(),
    };
    if length == 0 {
        return Err(no_elements(args.op()));
    }
    let second = match args.op() {
        Op::Aminmax => input.dtype,
        _ => {
            if !(1..=length).contains(&args.int("k")?.size) {
                return Err(Problem::invalid("kthvalue(): selected number k out of range"));
            }
            DType::Int64
        }
    };
    Ok(Value::Sequence(vec![
        TensorType::contiguous(input.dtype, shape.clone()).into(),
        TensorType::contiguous(second, shape).into(),
    ]))
}

/// `quantile`: several places become a first dimension, which lies innermost in memory.
pub(super) fn quantile(args: &Args) -> Inferred<Value> {
    let input = args.first_tensor()?;
    if !matches!(input.dtype, DType::Float32 | DType::Float64) {
        return Err(Problem::invalid(
            "quantile() input tensor must be either float or double dtype",
        ));
    }
    if input.elements() == 0 {
        return Err(Problem::invalid("quantile() input tensor must be non-empty"));
    }
    let axes = match args.optional_int("dim")? {
        Some(axis) => Some([wrap_axis(axis.size, input.rank())?]),
        None => None,
    };
    let folded_axes = axes.as_ref().map(|axes| axes.as_slice());
    let mut shape = folded(&input.shape, folded_axes, args.flag("keepdim")?);
    let count = match &*args.operand("q")? {
        Value::Tensor(places) if places.rank() > 1 => {
            return Err(Problem::invalid("quantile() q must be a scalar or 1D tensor"));
        }
        Value::Tensor(places) if places.dtype != input.dtype => {
            return Err(Problem::invalid(
                "quantile() q tensor must be same dtype as the input tensor",
            ));
        }
        Value::Tensor(places) => places.shape.first().cloned(),
        _ => None,
    };
    let Some(count) = count else {
        return Ok(TensorType::contiguous(input.dtype, shape).into());
    };
    shape.push(count);
    let mut result = TensorType::contiguous(input.dtype, shape);
    result.shape.rotate_right(1);
    result.strides.rotate_right(1);
    Ok(result.into())
}

/// `trapezoid`: the dimension of the points goes.
pub(super) fn trapezoid(args: &Args) -> Inferred<Value> {
    let y = args.tensor("y")?;
    let x = args.optional_tensor("x")?;
    let mut shape = match x {
        Some(x) if x.rank() > 1 => args.scope.broadcast([&y.shape[..], &x.shape[..]])?,
        _ => y.shape.clone(),
    };
    let axis = args.axis("dim", shape.len())?;
    if axis >= shape.len() {
        return Err(Problem::invalid("trapezoid needs at least one dimension"));
    }
    if let Some(x) = x.filter(|x| x.rank() <= 1)
        && x.shape.first().is_none_or(|size| !args.scope.same(size, &shape[axis]))
    {
        return Err(Problem::invalid(
            "trapezoid: There must be one `x` value for each sample point",
        ));
    }
    shape.remove(axis);
    let mut operands = vec![Operand::Tensor(y)];
    operands.extend(x.map(Operand::Tensor));
    let dtype = super::promote::to_float(result_type(&operands));
    Ok(TensorType::contiguous(dtype, shape).into())
}
