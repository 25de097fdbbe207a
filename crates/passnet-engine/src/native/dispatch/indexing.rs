//! Reads and writes by index.

use super::{Args, OpFunction, subscript};
use crate::engine::Value;
use crate::native::error::{Result, bail, ensure};
use crate::native::ops::indexing::{self, Bag, BagMode, ScatterOp, Unique};
use crate::native::ops::movement;
use crate::native::tensor::{Arg, Scalar, Tensor};
use passnet_graph::DType;
use passnet_graph::ops::Op;

pub(super) fn function_of(op: Op) -> Option<OpFunction> {
    Some(match op {
        Op::GetItem => subscript::get,
        Op::SetItem => subscript::set,
        Op::IndexTensors => index_tensors,
        Op::IndexPut => index_put,
        Op::Embedding => embedding,
        Op::EmbeddingBag => embedding_bag,
        Op::OneHot => one_hot,
        Op::Gather | Op::IndexSelect | Op::TakeAlongDim | Op::Take | Op::MaskedSelect => pick,
        Op::MaskedScatter => masked_scatter,
        Op::Scatter | Op::ScatterAdd | Op::ScatterReduce => scatter,
        Op::IndexAdd | Op::IndexCopy | Op::IndexFill => by_rows,
        Op::Nonzero => nonzero,
        Op::Bincount => bincount,
        Op::Searchsorted | Op::Bucketize => search,
        Op::IsIn => is_in,
        Op::Unique | Op::UniqueConsecutive => unique,
        _ => return None,
    })
}

fn index_list(args: &Args<'_>) -> Result<Vec<Option<Tensor>>> {
    match args.value("indices") {
        Value::Sequence(items) => items
            .iter()
            .map(|item| match item {
                Value::None => Ok(None),
                Value::Tensor(tensor) => Ok(Some(tensor.clone())),
                other => Err(super::args::wrong_type("indices", "tuple of Tensors", other)),
            })
            .collect(),
        Value::Tensor(tensor) => Ok(vec![Some(tensor.clone())]),
        other => Err(super::args::wrong_type("indices", "tuple of Tensors", other)),
    }
}

fn index_tensors(args: &Args<'_>) -> Result<Value> {
    Ok(indexing::index(args.input()?, &index_list(args)?)?.into())
}

fn index_put(args: &Args<'_>) -> Result<Value> {
    let target = args.written()?;
    let values = args.tensor("values")?;
    indexing::index_put(&target, &index_list(args)?, values, args.flag("accumulate")?)?;
    Ok(target.into())
}

fn embedding(args: &Args<'_>) -> Result<Value> {
    let (index, table) = (args.tensor("input")?, args.tensor("weight")?);
    bound_rows(args, index, table)?;
    Ok(indexing::embedding(index, table)?.into())
}

/// With `max_norm` the table's own rows are shortened before they are read.
fn bound_rows(args: &Args<'_>, index: &Tensor, table: &Tensor) -> Result<()> {
    match args.optional_float("max_norm")? {
        Some(most) => indexing::bound_rows(table, index, most, args.float("norm_type")?),
        None => Ok(()),
    }
}

fn embedding_bag(args: &Args<'_>) -> Result<Value> {
    let (index, table) = (args.tensor("input")?, args.tensor("weight")?);
    bound_rows(args, index, table)?;
    let bag = Bag {
        mode: match args.text("mode") {
            Some("sum") => BagMode::Sum,
            Some("mean") => BagMode::Mean,
            Some("max") => BagMode::Max,
            _ => bail!(Value, "mode has to be one of sum, mean or max"),
        },
        offsets: args.optional_tensor("offsets")?,
        weights: args.optional_tensor("per_sample_weights")?,
        include_last_offset: args.flag("include_last_offset")?,
        padding_index: args.optional_int("padding_idx")?,
    };
    Ok(indexing::embedding_bag(index, table, &bag)?.into())
}

fn one_hot(args: &Args<'_>) -> Result<Value> {
    Ok(movement::one_hot(args.tensor("tensor")?, args.int("num_classes")?)?.into())
}

fn pick(args: &Args<'_>) -> Result<Value> {
    let input = args.input()?;
    Ok(match args.op {
        Op::Gather => indexing::gather(input, args.int("dim")?, args.tensor("index")?)?,
        Op::IndexSelect => indexing::index_select(input, args.int("dim")?, args.tensor("index")?)?,
        Op::TakeAlongDim => {
            indexing::take_along_dim(input, args.tensor("indices")?, args.optional_int("dim")?)?
        }
        Op::Take => {
            let index = args.tensor("index")?;
            indexing::index(&input.reshape(&[-1])?, &[Some(index.clone())])?
        }
        _ => indexing::masked_select(input, args.tensor("mask")?)?,
    }
    .into())
}

fn masked_scatter(args: &Args<'_>) -> Result<Value> {
    let (input, mask, source) = (args.input()?, args.tensor("mask")?, args.tensor("source")?);
    ensure!(
        mask.dtype() == DType::Bool,
        DType,
        "masked_scatter_ only supports boolean masks, but got mask with dtype {}",
        mask.dtype()
    );
    let target = if args.in_place {
        args.written()?
    } else {
        let shape =
            crate::native::tensor::layout::broadcast_shapes(&[input.shape(), mask.shape()])?;
        input.expand_to(&shape)?.dense_copy(input.dtype())?
    };
    let mask = mask.expand_to(target.shape())?.contiguous()?;
    let places = indexing::nonzero(&mask.reshape(&[-1])?)?.reshape(&[-1])?;
    let count = places.numel();
    ensure!(
        source.numel() >= count,
        Shape,
        "masked_scatter: expected self and source to have same dtypes and at least {count} elements in source, got {}",
        source.numel()
    );
    let values = source.reshape(&[-1])?.narrow(0, 0, count)?.to_dtype(target.dtype())?;
    if target.ndim() == 0 {
        if count > 0 {
            target.copy_from(&values.reshape(&[])?)?;
        }
    } else {
        indexing::index_put(&target, &[Some(mask)], &values, false)?;
    }
    Ok(target.into())
}

fn scatter_op(name: Option<&str>) -> Result<ScatterOp> {
    Ok(match name {
        None => ScatterOp::Assign,
        Some("add" | "sum") => ScatterOp::Add,
        Some("multiply" | "prod") => ScatterOp::Multiply,
        Some("mean") => ScatterOp::Mean,
        Some("amax") => ScatterOp::Maximum,
        Some("amin") => ScatterOp::Minimum,
        Some(other) => bail!(
            Value,
            "reduce argument must be either sum, prod, mean, amax or amin, got {other}"
        ),
    })
}

fn scatter(args: &Args<'_>) -> Result<Value> {
    let target = args.written()?;
    let (dim, index) = (args.int("dim")?, args.tensor("index")?);
    let op = match args.op {
        Op::ScatterAdd => ScatterOp::Add,
        _ => scatter_op(args.text("reduce"))?,
    };
    let include_self = args.op != Op::ScatterReduce || args.flag("include_self")?;
    let name = if args.has("src") { "src" } else { "value" };
    match args.operand(name)? {
        Arg::Tensor(source) => indexing::scatter(&target, dim, index, &source, op, include_self)?,
        Arg::Scalar(value) => indexing::scatter_value(&target, dim, index, value, op)?,
    }
    Ok(target.into())
}

fn by_rows(args: &Args<'_>) -> Result<Value> {
    let target = args.written()?;
    let (dim, index) = (args.int("dim")?, args.tensor("index")?);
    if args.op == Op::IndexAdd {
        indexing::index_add(&target, dim, index, args.tensor("source")?, args.number("alpha")?)?;
        return Ok(target.into());
    }
    ensure!(target.ndim() > 0, Index, "a 0-d tensor has no rows");
    let rows: Vec<i64> = index.reshape(&[-1])?.to_vec()?;
    for (at, row) in rows.iter().enumerate() {
        let line = target.select(dim, *row)?;
        match args.op {
            Op::IndexCopy => line.copy_from(&args.tensor("source")?.select(dim, at as i64)?)?,
            _ => line.fill(args.number("value")?)?,
        }
    }
    Ok(target.into())
}

fn nonzero(args: &Args<'_>) -> Result<Value> {
    let places = indexing::nonzero(args.input()?)?;
    if args.flag("as_tuple")? {
        return Ok(Value::tensors(places.unbind(1)?));
    }
    Ok(places.into())
}

fn bincount(args: &Args<'_>) -> Result<Value> {
    let input = args.input()?;
    ensure!(
        input.ndim() == 1 && input.dtype().is_integer(),
        DType,
        "bincount only supports 1-d non-negative integral inputs."
    );
    let bins: Vec<i64> = input.to_vec()?;
    ensure!(
        bins.iter().all(|bin| *bin >= 0),
        Value,
        "bincount only supports 1-d non-negative integral inputs."
    );
    let length = bins.iter().max().map_or(0, |most| most + 1).max(args.int("minlength")?) as usize;
    let (weights, dtype) = match args.optional_tensor("weights")? {
        Some(weights) => {
            ensure!(
                weights.shape() == input.shape(),
                Shape,
                "weights should be 1-d and have the same length as input"
            );
            let dtype =
                if weights.dtype() == DType::Float32 { DType::Float32 } else { DType::Float64 };
            (weights.clone(), dtype)
        }
        None => (Tensor::full(input.shape(), Scalar::Int(1), DType::Int64)?, DType::Int64),
    };
    let target = Tensor::zeros(&[length], dtype)?;
    let index = input.to_dtype(DType::Int64)?;
    indexing::scatter(&target, 0, &index, &weights.to_dtype(dtype)?, ScatterOp::Add, true)?;
    Ok(target.into())
}

/// Whether each element is among others.
fn is_in(args: &Args<'_>) -> Result<Value> {
    let elements = args.operand("elements")?.to_tensor()?;
    let others = args.operand("test_elements")?.to_tensor()?;
    let dtype = elements.dtype().promote(others.dtype());
    let wide = |tensor: Tensor| -> Result<Tensor> {
        tensor.to_dtype(dtype)?.to_dtype(match dtype.is_float() {
            true => DType::Float64,
            false => DType::Int64,
        })
    };
    let (elements, others) = (wide(elements)?, wide(others)?);
    let inverted = args.flag("invert")?;
    let found: Vec<i64> = if dtype.is_float() {
        // No NaN is equal to any number.
        let mut known: Vec<f64> = others.to_vec()?;
        known.retain(|value| !value.is_nan());
        known.sort_unstable_by(f64::total_cmp);
        let is_known = |value: &f64| {
            let at = known.partition_point(|known| known < value);
            known.get(at).is_some_and(|known| known == value)
        };
        let values = elements.to_vec::<f64>()?;
        values.iter().map(|value| i64::from(is_known(value) != inverted)).collect()
    } else {
        let mut known: Vec<i64> = others.to_vec()?;
        known.sort_unstable();
        let is_known = |value: &i64| known.binary_search(value).is_ok();
        let values = elements.to_vec::<i64>()?;
        values.iter().map(|value| i64::from(is_known(value) != inverted)).collect()
    };
    Ok(Tensor::from_slice(&found, elements.shape())?.to_dtype(DType::Bool)?.into())
}

fn unique(args: &Args<'_>) -> Result<Value> {
    let consecutive = args.op == Op::UniqueConsecutive;
    let found = indexing::unique(args.input()?, args.optional_int("dim")?, consecutive)?;
    let Unique { values, inverse, counts } = found;
    Ok(match (args.flag("return_inverse")?, args.flag("return_counts")?) {
        (false, false) => values.into(),
        (true, false) => Value::tensors(vec![values, inverse]),
        (false, true) => Value::tensors(vec![values, counts]),
        (true, true) => Value::tensors(vec![values, inverse, counts]),
    })
}

/// `searchsorted` and `bucketize`: how many boundaries lie before each value.
fn search(args: &Args<'_>) -> Result<Value> {
    let (boundaries, values) = if args.op == Op::Bucketize {
        (args.tensor("boundaries")?.clone(), args.operand("input")?.to_tensor()?)
    } else {
        let sorted = args.tensor("sorted_sequence")?;
        let sorted = match args.optional_tensor("sorter")? {
            Some(sorter) => indexing::gather(sorted, -1, sorter)?,
            None => sorted.clone(),
        };
        (sorted, args.operand("values")?.to_tensor()?)
    };
    let right = args.flag("right")? || args.text("side") == Some("right");
    let length = *boundaries.shape().last().unwrap_or(&1);
    let shared = boundaries.ndim() <= 1;
    ensure!(
        shared
            || boundaries.shape()[..boundaries.ndim() - 1]
                == values.shape()[..values.ndim().saturating_sub(1)],
        Shape,
        "boundaries tensor should be 1 dimension or the first N-1 dimensions of boundaries tensor and input value tensor must match"
    );
    let per_row = if shared { usize::MAX } else { (*values.shape().last().unwrap_or(&1)).max(1) };
    let (sorted, wanted) = (boundaries.to_vec::<f64>()?, values.to_vec::<f64>()?);
    let places: Vec<i64> = wanted
        .iter()
        .enumerate()
        .map(|(at, value)| {
            let row = if shared { 0 } else { at / per_row };
            let row = &sorted[row * length..(row + 1) * length];
            let before = |boundary: &f64| {
                if right { boundary <= value } else { boundary < value }
            };
            row.partition_point(|boundary| before(boundary) && !boundary.is_nan() || value.is_nan())
                as i64
        })
        .collect();
    let result = Tensor::from_slice(&places, values.shape())?;
    let dtype = if args.flag("out_int32")? { DType::Int32 } else { DType::Int64 };
    Ok(result.to_dtype(dtype)?.into())
}
