//! Folds over dimensions, running folds, sorting.

use super::args::Ints;
use super::{Args, OpFunction};
use crate::engine::Value;
use crate::native::error::{Result, bail, ensure};
use crate::native::ops::matrix_norm::{MatrixNorm, matrix_norm};
use crate::native::ops::pointwise::{self, Binary};
use crate::native::ops::reduce::{self, Between, Extreme, Scan};
use crate::native::tensor::{Arg, Scalar, Tensor};
use passnet_graph::DType;
use passnet_graph::ops::Op;

pub(super) fn function_of(op: Op) -> Option<OpFunction> {
    Some(match op {
        Op::Sum | Op::Mean | Op::NanSum | Op::Prod => sum,
        Op::Max | Op::Min => extremum,
        Op::Amax | Op::Amin | Op::Argmax | Op::Argmin => extreme,
        Op::All | Op::Any | Op::CountNonzero => truth,
        Op::Var | Op::Std | Op::VarMean | Op::StdMean => moments,
        Op::Norm | Op::LinalgNorm | Op::VectorNorm => norm,
        Op::Logsumexp => logsumexp,
        Op::Median => median,
        Op::NanMean => nan_mean,
        Op::Aminmax => both_extremes,
        Op::Quantile => quantile,
        Op::Kthvalue => kth_value,
        Op::Trapezoid => trapezoid,
        Op::Logcumsumexp => log_cum_sum_exp,
        Op::Cumsum | Op::Cumprod => scan,
        Op::Cummax | Op::Cummin => running_extreme,
        Op::Topk => topk,
        Op::Sort | Op::Argsort => sort,
        _ => return None,
    })
}

/// The dimensions to fold; none named means all.
fn dims(args: &Args<'_>) -> Result<Option<Ints>> {
    Ok(args.optional_ints("dim")?.filter(|dims| !dims.is_empty()))
}

fn pair(first: Tensor, second: Tensor) -> Value {
    Value::tensors([first, second])
}

fn sum(args: &Args<'_>) -> Result<Value> {
    let input = args.input()?;
    let (dims, dtype) = (dims(args)?, args.dtype("dtype"));
    let (dims, keepdim) = (dims.as_deref(), args.flag("keepdim")?);
    Ok(match args.op {
        Op::Sum => reduce::sum(input, dims, keepdim, dtype)?,
        Op::Mean => reduce::mean(input, dims, keepdim, dtype)?,
        Op::NanSum => {
            let without = pointwise::where_select(
                &pointwise::isnan(input)?,
                &Scalar::Int(0).into(),
                &input.into(),
            )?;
            reduce::sum(&without, dims, keepdim, dtype)?
        }
        _ => reduce::prod(input, dims.and_then(|dims| dims.first().copied()), keepdim, dtype)?,
    }
    .into())
}

fn which(op: Op) -> Extreme {
    match op {
        Op::Max | Op::Amax | Op::Argmax | Op::Cummax => Extreme::Max,
        _ => Extreme::Min,
    }
}

/// `max` and `min`: of all elements, along a dimension with the places, or of two tensors.
fn extremum(args: &Args<'_>) -> Result<Value> {
    let input = args.input()?;
    let is_max = args.op == Op::Max;
    for name in ["other", "dim"] {
        if let Value::Tensor(other) = args.value(name)
            && (name == "other" || other.ndim() > 0 || other.dtype().is_float())
        {
            let op = if is_max { Binary::Maximum } else { Binary::Minimum };
            return Ok(pointwise::binary(op, &input.into(), &other.into())?.into());
        }
    }
    match args.optional_int("dim")? {
        None => Ok(reduce::extreme(input, which(args.op), None, false)?.into()),
        Some(dim) => {
            let keepdim = args.flag("keepdim")?;
            let (values, places) = reduce::extreme_with_index(input, which(args.op), dim, keepdim)?;
            Ok(pair(values, places))
        }
    }
}

fn extreme(args: &Args<'_>) -> Result<Value> {
    let (input, keepdim) = (args.input()?, args.flag("keepdim")?);
    Ok(match args.op {
        Op::Amax | Op::Amin => {
            reduce::extreme(input, which(args.op), dims(args)?.as_deref(), keepdim)?
        }
        _ => reduce::arg_extreme(input, which(args.op), args.optional_int("dim")?, keepdim)?,
    }
    .into())
}

fn truth(args: &Args<'_>) -> Result<Value> {
    let input = args.input()?;
    let dims = dims(args)?;
    Ok(match args.op {
        Op::CountNonzero => reduce::count_nonzero(input, dims.as_deref())?,
        Op::All => reduce::all(input, dims.as_deref(), args.flag("keepdim")?)?,
        _ => reduce::any(input, dims.as_deref(), args.flag("keepdim")?)?,
    }
    .into())
}

fn moments(args: &Args<'_>) -> Result<Value> {
    let input = args.input()?;
    // `x.var(False)` names no dimension: the flag stands where a dimension could.
    let flag = match args.value("dim") {
        Value::Number(Scalar::Bool(unbiased)) => Some(*unbiased),
        _ => None,
    };
    let dims = if flag.is_some() { None } else { dims(args)? };
    let correction = match (flag, args.value("unbiased"), args.value("correction")) {
        (Some(unbiased), ..) => f64::from(u8::from(unbiased)),
        (None, Value::None, Value::None) => 1.0,
        (None, Value::None, _) => args.float("correction")?,
        _ => f64::from(u8::from(args.flag("unbiased")?)),
    };
    let keepdim = args.flag("keepdim")?;
    let (dims, mean) = (dims.as_deref(), |dims| reduce::mean(input, dims, keepdim, None));
    let spread = match args.op {
        Op::Var | Op::VarMean => reduce::var(input, dims, correction, keepdim)?,
        _ => reduce::std(input, dims, correction, keepdim)?,
    };
    Ok(match args.op {
        Op::Var | Op::Std => spread.into(),
        _ => pair(spread, mean(dims)?),
    })
}

fn norm(args: &Args<'_>) -> Result<Value> {
    let input = args.input()?;
    let name = if args.op == Op::Norm { "p" } else { "ord" };
    let dims = dims(args)?;
    let order = match args.value(name) {
        Value::None => 2.0,
        Value::Text(text) if &**text == "fro" => 2.0,
        Value::Text(text) if matches!(&**text, "inf" | "-inf") => {
            if text.starts_with('-') {
                f64::NEG_INFINITY
            } else {
                f64::INFINITY
            }
        }
        Value::Text(text) if &**text == "nuc" => {
            return of_matrices(args, MatrixNorm::Nuclear, dims.as_deref());
        }
        Value::Text(text) => bail!(Value, "Invalid norm order: {text}"),
        _ => args.float(name)?,
    };
    let is_matrix = match &dims {
        Some(dims) => dims.len() == 2,
        None => input.ndim() == 2,
    };
    let named = !matches!(args.value(name), Value::None | Value::Text(_));
    if args.op == Op::LinalgNorm && named && is_matrix {
        return of_matrices(args, MatrixNorm::Order(order), dims.as_deref());
    }
    let dtype = args.dtype("dtype");
    let keepdim = args.flag("keepdim")?;
    Ok(reduce::vector_norm(input, order, dims.as_deref(), keepdim, dtype)?.into())
}

fn of_matrices(args: &Args<'_>, norm: MatrixNorm, dims: Option<&[i64]>) -> Result<Value> {
    let input = args.input()?;
    let dims = match dims {
        Some(&[rows, columns]) => [rows, columns],
        None if input.ndim() == 2 => [0, 1],
        _ => bail!(Value, "linalg.matrix_norm: dim must be a 2-tuple"),
    };
    let input = match args.dtype("dtype") {
        Some(dtype) => input.to_dtype(dtype)?,
        None => input.clone(),
    };
    Ok(matrix_norm(&input, norm, dims, args.flag("keepdim")?)?.into())
}

fn logsumexp(args: &Args<'_>) -> Result<Value> {
    Ok(reduce::logsumexp(args.input()?, &args.ints("dim")?, args.flag("keepdim")?)?.into())
}

/// The lower of the two middle elements where there are two.
fn median(args: &Args<'_>) -> Result<Value> {
    let input = args.input()?;
    let middle = |input: &Tensor, dim: i64, keepdim: bool| -> Result<(Tensor, Tensor)> {
        let length = input.size(dim)?;
        ensure!(length > 0, Index, "median(): Expected reduction dim to have non-zero size.");
        let (values, places) = reduce::sort(input, dim, false)?;
        let pick = |sorted: Tensor| -> Result<Tensor> {
            let middle = sorted.narrow(dim, ((length - 1) / 2) as i64, 1)?;
            if keepdim { middle.copy() } else { middle.squeeze(Some(&[dim]))?.copy() }
        };
        Ok((pick(values)?, pick(places)?))
    };
    match args.optional_int("dim")? {
        None => Ok(middle(&input.reshape(&[-1])?, 0, false)?.0.into()),
        Some(dim) => {
            let (values, places) = middle(input, dim, args.flag("keepdim")?)?;
            Ok(pair(values, places))
        }
    }
}

fn scan(args: &Args<'_>) -> Result<Value> {
    let kind = if args.op == Op::Cumsum { Scan::Sum } else { Scan::Product };
    Ok(reduce::scan(args.input()?, kind, args.int("dim")?, args.dtype("dtype"))?.into())
}

/// `cummax`, `cummin`: the best so far and where it stood; later ones win ties.
fn running_extreme(args: &Args<'_>) -> Result<Value> {
    let input = args.input()?;
    ensure!(!input.dtype().is_complex(), DType, "cummax/cummin of complex tensors is not defined");
    let dim = input.dim(args.int("dim")?)? as i64;
    if input.ndim() == 0 {
        return Ok(pair(input.copy()?, Tensor::zeros(&[], DType::Int64)?));
    }
    let last = input.transpose(dim, -1)?;
    let length = last.size(-1)?;
    let is_max = args.op == Op::Cummax;
    let values = last.to_vec::<f64>()?;
    let mut places = vec![0i64; values.len()];
    let mut offsets = vec![0i64; values.len()];
    for (row, values) in values.chunks(length.max(1)).enumerate() {
        let mut best = 0;
        for (at, value) in values.iter().enumerate() {
            let better = if is_max { *value >= values[best] } else { *value <= values[best] };
            if value.is_nan() || (better && !values[best].is_nan()) {
                best = at;
            }
            places[row * length + at] = best as i64;
            offsets[row * length + at] = (row * length + best) as i64;
        }
    }
    let flat = last.reshape(&[-1])?;
    let offsets = Tensor::from_slice(&offsets, &[offsets.len()])?;
    let best = crate::native::ops::indexing::index_select(&flat, 0, &offsets)?;
    let shape: Vec<i64> = last.shape().iter().map(|size| *size as i64).collect();
    let best = best.reshape(&shape)?.transpose(dim, -1)?.contiguous()?;
    let places = Tensor::from_slice(&places, last.shape())?.transpose(dim, -1)?.contiguous()?;
    Ok(pair(best, places))
}

fn topk(args: &Args<'_>) -> Result<Value> {
    let (k, dim) = (args.size("k")?, args.int("dim")?);
    let (values, places) =
        reduce::topk(args.input()?, k, dim, args.flag("largest")?, args.flag("sorted")?)?;
    Ok(pair(values, places))
}

fn sort(args: &Args<'_>) -> Result<Value> {
    let (values, places) = reduce::sort(args.input()?, args.int("dim")?, args.flag("descending")?)?;
    Ok(if args.op == Op::Sort { pair(values, places) } else { places.into() })
}

fn nan_mean(args: &Args<'_>) -> Result<Value> {
    let input = args.input()?;
    let (dims, keepdim, dtype) = (dims(args)?, args.flag("keepdim")?, args.dtype("dtype"));
    let unknown = pointwise::isnan(input)?;
    let zero: Arg = Scalar::Int(0).into();
    let known = pointwise::where_select(&unknown, &zero, &input.into())?;
    let sum = reduce::sum(&known, dims.as_deref(), keepdim, dtype)?;
    let counted = pointwise::logical_not(&unknown)?;
    let count = reduce::sum(&counted, dims.as_deref(), keepdim, None)?;
    Ok(pointwise::div(&sum.into(), &count.into())?.into())
}

fn both_extremes(args: &Args<'_>) -> Result<Value> {
    let (input, keepdim) = (args.input()?, args.flag("keepdim")?);
    let dim = args.optional_int("dim")?.map(|dim| [dim]);
    let dims = dim.as_ref().map(|dim| dim.as_slice());
    let of = |which: Extreme| reduce::extreme(input, which, dims, keepdim);
    Ok(pair(of(Extreme::Min)?, of(Extreme::Max)?))
}

fn quantile(args: &Args<'_>) -> Result<Value> {
    let input = args.input()?;
    let between = Between::from_name(args.text("interpolation"))?;
    let (dim, keepdim) = (args.optional_int("dim")?, args.flag("keepdim")?);
    let places = match args.operand("q")? {
        Arg::Tensor(places) => places,
        Arg::Scalar(place) => Tensor::scalar(place, DType::Float64)?,
    };
    let alone = places.ndim() == 0;
    let result = reduce::quantile(input, &places, dim, keepdim, between)?;
    Ok(if alone { result.select(0, 0)?.contiguous()? } else { result }.into())
}

fn kth_value(args: &Args<'_>) -> Result<Value> {
    let (k, dim) = (args.size("k")?, args.int("dim")?);
    let (values, places) = reduce::kth_value(args.input()?, k, dim, args.flag("keepdim")?)?;
    Ok(pair(values, places))
}

fn log_cum_sum_exp(args: &Args<'_>) -> Result<Value> {
    Ok(reduce::log_cum_sum_exp(args.input()?, args.int("dim")?)?.into())
}

/// The area under straight lines between points, which are one apart where no `x` says otherwise.
fn trapezoid(args: &Args<'_>) -> Result<Value> {
    let (y, dim) = (args.tensor("y")?, args.int("dim")?);
    let apart = |t: &Tensor, dim: i64| -> Result<(Tensor, Tensor)> {
        let steps = t.size(dim)?.saturating_sub(1);
        let later = t.narrow(dim, i64::from(steps > 0), steps)?;
        Ok((t.narrow(dim, 0, steps)?, later))
    };
    let (first, second) = apart(y, dim)?;
    let heights = pointwise::add(&first.into(), &second.into(), Scalar::Int(1))?;
    let widths: Arg = match args.optional_tensor("x")? {
        Some(x) => {
            let along = if x.ndim() == 1 { 0 } else { dim };
            let (first, second) = apart(x, along)?;
            let widths = pointwise::sub(&second.into(), &first.into(), Scalar::Int(1))?;
            let mut shape = vec![1; y.ndim()];
            shape[y.dim(dim)?] = -1;
            if x.ndim() == 1 { widths.reshape(&shape)? } else { widths }.into()
        }
        None => Arg::Scalar(args.number("dx")?),
    };
    let areas = pointwise::mul(&heights.into(), &widths)?;
    let dim = if dim < 0 { dim } else { dim - y.ndim() as i64 };
    let sum = reduce::sum(&areas, Some(&[dim]), false, None)?;
    Ok(pointwise::div(&sum.into(), &Scalar::Int(2).into())?.into())
}
