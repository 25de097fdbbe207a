//! vmap: inside it a mapped dimension is hidden from every operation.
//!
//! A mapped tensor carries its hidden dimensions in front, one per nesting level in order. Elementwise operations then
//! broadcast over them by themselves once all operands carry the same levels; that, and reading by mapped indices, is
//! what the masks of transformer models use.

use super::{Args, function_of};
use crate::engine::{Mapped, Value};
use crate::native::error::{Result, bail, ensure};
use crate::native::ops::creation::arange;
use crate::native::ops::indexing;
use crate::native::tensor::Tensor;
use passnet_graph::DType;
use passnet_graph::ops::{Class, Op};
use smallvec::SmallVec;
use std::borrow::Cow;
use std::cell::Cell;
use std::sync::Arc;

pub(super) fn nesting(args: &Args<'_>) -> Result<Value> {
    let nesting = &args.context.nesting;
    let level = nesting.get();
    if args.op == Op::VmapIncrementNesting {
        nesting.set(level.saturating_add(1));
        return Ok(Value::int(nesting.get()));
    }
    nesting.set((level - 1).max(0));
    Ok(Value::int(level))
}

pub(super) fn add_batch_dim(args: &Args<'_>) -> Result<Value> {
    let level = args.int("level")?;
    let (tensor, mut levels) = match args.first() {
        Value::Tensor(tensor) => (tensor.clone(), Vec::new()),
        Value::Mapped(mapped) => (mapped.tensor.clone(), mapped.levels.clone()),
        other => return Err(super::args::wrong_type("input", "Tensor", other)),
    };
    let hidden = levels.len();
    ensure!(!levels.contains(&level), Value, "vmap: the tensor is mapped at level {level} already");
    let logical = tensor.ndim() - hidden;
    ensure!(logical > 0, Shape, "vmap: a tensor without dimensions cannot be mapped");
    let dim = args.int("in_dim")?;
    let dim = if dim < 0 { dim + logical as i64 } else { dim };
    ensure!((0..logical as i64).contains(&dim), Index, "vmap: dimension {dim} is out of range");
    let place = levels.partition_point(|own| *own < level);
    levels.insert(place, level);
    let tensor = tensor.movedim(&[hidden as i64 + dim], &[place as i64])?;
    Ok(Value::Mapped(Arc::new(Mapped { tensor, levels })))
}

pub(super) fn remove_batch_dim(args: &Args<'_>) -> Result<Value> {
    let (level, out_dim) = (args.int("level")?, args.int("out_dim")?);
    match args.first() {
        // The result does not depend on the mapped value: it is repeated.
        Value::Tensor(tensor) => {
            let dim = wrap(out_dim, tensor.ndim() + 1)?;
            let mut shape = tensor.shape().to_vec();
            shape.insert(dim, args.size("batch_size")?);
            Ok(tensor.unsqueeze(dim as i64)?.expand_to(&shape)?.into())
        }
        Value::Mapped(mapped) => {
            let hidden = mapped.levels.len();
            let mut levels = mapped.levels.clone();
            let dim = wrap(out_dim, mapped.tensor.ndim() - hidden + 1)?;
            let tensor = match levels.iter().position(|own| *own == level) {
                Some(place) => {
                    levels.remove(place);
                    mapped.tensor.movedim(&[place as i64], &[(hidden - 1 + dim) as i64])?
                }
                None => {
                    let at = hidden + dim;
                    let mut shape = mapped.tensor.shape().to_vec();
                    shape.insert(at, args.size("batch_size")?);
                    mapped.tensor.unsqueeze(at as i64)?.expand_to(&shape)?
                }
            };
            Ok(wrapped(tensor, levels))
        }
        other => Err(super::args::wrong_type("input", "Tensor", other)),
    }
}

fn wrap(dim: i64, rank: usize) -> Result<usize> {
    let wrapped = if dim < 0 { dim + rank as i64 } else { dim };
    ensure!((0..rank as i64).contains(&wrapped), Index, "vmap: dimension {dim} is out of range");
    Ok(wrapped as usize)
}

fn wrapped(tensor: Tensor, levels: Vec<i64>) -> Value {
    if levels.is_empty() {
        return tensor.into();
    }
    Value::Mapped(Arc::new(Mapped { tensor, levels }))
}

fn is_mapped(value: &Value) -> bool {
    match value {
        Value::Mapped(_) => true,
        Value::Sequence(items) => items.iter().any(is_mapped),
        Value::Slice(parts) => parts.iter().any(is_mapped),
        _ => false,
    }
}

/// Whether an operation other than vmap's own meets a mapped tensor.
pub(crate) fn concerns(args: &Args<'_>) -> bool {
    !matches!(args.op, Op::AddBatchDim | Op::RemoveBatchDim)
        && args.values.iter().any(|value| is_mapped(value))
}

/// Runs an operation on mapped tensors.
pub(crate) fn apply(args: &Args<'_>) -> Result<Value> {
    ensure!(
        !args.in_place && !args.has_out(),
        Unsupported,
        "in-place operations inside vmap are not supported yet"
    );
    match args.op {
        Op::GetItem => subscript(args),
        Op::IndexTensors => index(args),
        op if op.class() == Class::Pointwise => pointwise(args),
        Op::To | Op::Detach | Op::Bool | Op::Long | Op::Int | Op::Float | Op::Clone => {
            pointwise(args)
        }
        Op::ZerosLike | Op::OnesLike | Op::EmptyLike | Op::FullLike => pointwise(args),
        Op::NewZeros | Op::NewOnes | Op::NewEmpty | Op::NewFull | Op::NewTensor => made_anew(args),
        Op::Dim | Op::Size | Op::Shape => property(args),
        op => bail!(Unsupported, "`{}` inside vmap is not supported yet", op.name()),
    }
}

/// All levels that a set of values is mapped at, in order.
fn levels_of<'a>(values: impl Iterator<Item = &'a Value>) -> Vec<i64> {
    let mut levels: Vec<i64> = Vec::new();
    for value in values {
        if let Value::Mapped(mapped) = value {
            levels.extend(&mapped.levels);
        }
    }
    levels.sort_unstable();
    levels.dedup();
    levels
}

/// The tensor with a hidden dimension for each of `levels` and `rank` dimensions of its own.
fn aligned(value: &Value, levels: &[i64], rank: usize) -> Result<Option<Tensor>> {
    let (mut tensor, own): (Tensor, &[i64]) = match value {
        Value::Tensor(tensor) => (tensor.clone(), &[]),
        Value::Mapped(mapped) => (mapped.tensor.clone(), &mapped.levels),
        _ => return Ok(None),
    };
    for (place, level) in levels.iter().enumerate() {
        if !own.contains(level) {
            tensor = tensor.unsqueeze(place as i64)?;
        }
    }
    while tensor.ndim() < levels.len() + rank {
        tensor = tensor.unsqueeze(levels.len() as i64)?;
    }
    Ok(Some(tensor))
}

fn rank_of(value: &Value) -> usize {
    match value {
        Value::Tensor(tensor) => tensor.ndim(),
        Value::Mapped(mapped) => mapped.tensor.ndim() - mapped.levels.len(),
        _ => 0,
    }
}

fn pointwise(args: &Args<'_>) -> Result<Value> {
    let levels = levels_of(args.values.iter().map(|value| &**value));
    let rank = args.values.iter().map(|value| rank_of(value)).max().unwrap_or(0);
    let values = args
        .values
        .iter()
        .map(|value| {
            Ok(match aligned(value, &levels, rank)? {
                Some(tensor) => Cow::Owned(Value::Tensor(tensor)),
                None => value.clone(),
            })
        })
        .collect::<Result<SmallVec<[Cow<'_, Value>; 8]>>>()?;
    let inner = Args { values: &values, dying: 0, wrote: Cell::new(false), ..*args };
    let Some(function) = function_of(args.op) else {
        bail!(Unsupported, "`{}` is not supported yet", args.op.name())
    };
    match function(&inner)? {
        Value::Tensor(tensor) => Ok(wrapped(tensor, levels)),
        other => Ok(other),
    }
}

/// `x.new_ones(size)`: of a mapped tensor only the type is used, and the result is the same for every hidden index.
fn made_anew(args: &Args<'_>) -> Result<Value> {
    let Value::Mapped(mapped) = args.first() else {
        bail!(Unsupported, "`{}` with mapped arguments is not supported yet", args.op.name())
    };
    let mut values: SmallVec<[Cow<'_, Value>; 8]> = args.values.iter().cloned().collect();
    values[0] = Cow::Owned(Value::Tensor(mapped.tensor.clone()));
    let inner = Args { values: &values, dying: 0, wrote: Cell::new(false), ..*args };
    match function_of(args.op) {
        Some(function) => function(&inner),
        None => bail!(Unsupported, "`{}` is not supported yet", args.op.name()),
    }
}

fn property(args: &Args<'_>) -> Result<Value> {
    let Value::Mapped(mapped) = args.first() else {
        bail!(Unsupported, "`{}` inside vmap is not supported yet", args.op.name())
    };
    let shape = &mapped.tensor.shape()[mapped.levels.len()..];
    Ok(match args.op {
        Op::Dim => Value::int(shape.len() as i64),
        Op::Size if args.optional_int("dim")?.is_some() => {
            Value::int(shape[wrap(args.int("dim")?, shape.len())?] as i64)
        }
        _ => Value::sizes(shape),
    })
}

/// `x[i, j]` by index tensors, or a view of a mapped tensor.
fn subscript(args: &Args<'_>) -> Result<Value> {
    let input = args.value("input");
    let one = [args.value("index").clone()];
    let items: &[Value] = match args.value("index") {
        Value::Sequence(items) => items,
        _ => &one,
    };
    let is_tensor = |item: &Value| matches!(item, Value::Tensor(_) | Value::Mapped(_));
    if matches!(input, Value::Mapped(_)) && !items.iter().all(is_tensor) {
        return views(args);
    }
    pick(input, items)
}

/// `torch.ops.aten.index(x, [i, j])`.
fn index(args: &Args<'_>) -> Result<Value> {
    match args.value("indices") {
        Value::Sequence(items) => pick(args.value("input"), items),
        item => pick(args.value("input"), std::slice::from_ref(item)),
    }
}

/// Elements of `input` at index tensors over its first dimensions.
fn pick(input: &Value, items: &[Value]) -> Result<Value> {
    ensure!(
        items.iter().all(|item| matches!(item, Value::Tensor(_) | Value::Mapped(_))),
        Unsupported,
        "a subscript inside vmap by anything but index tensors is not supported yet"
    );
    let (tensor, own): (&Tensor, &[i64]) = match input {
        Value::Tensor(tensor) => (tensor, &[]),
        Value::Mapped(mapped) => (&mapped.tensor, &mapped.levels),
        other => return Err(super::args::wrong_type("input", "Tensor", other)),
    };
    let levels = levels_of(items.iter().chain([input]));
    let rank = items.iter().map(rank_of).max().unwrap_or(0);
    // Along its hidden dimensions the input is read at each index's own place.
    let mut picks = Vec::with_capacity(own.len() + items.len());
    for (d, level) in own.iter().enumerate() {
        let mut shape = vec![1; levels.len() + rank];
        let place = levels.iter().position(|known| known == level).unwrap_or(0);
        shape[place] = tensor.shape()[d];
        let size = (tensor.shape()[d] as i64).into();
        let places = arange(0i64.into(), size, 1i64.into(), DType::Int64)?;
        picks.push(Some(places.reshape_to(&shape)?));
    }
    for item in items {
        picks.push(aligned(item, &levels, rank)?);
    }
    Ok(wrapped(indexing::index(tensor, &picks)?, levels))
}

/// `x[None]`, `x[:, None]` of a mapped tensor: the visible dimensions follow the hidden ones.
fn views(args: &Args<'_>) -> Result<Value> {
    let Value::Mapped(mapped) = args.value("input") else {
        bail!(Unsupported, "this subscript inside vmap is not supported yet")
    };
    let whole = Value::Slice(Arc::new([Value::None, Value::None, Value::None]));
    let mut items = vec![whole; mapped.levels.len()];
    match args.value("index") {
        Value::Sequence(own) => items.extend(own.iter().cloned()),
        item => items.push(item.clone()),
    }
    let plain = items.iter().all(|item| {
        matches!(item, Value::None | Value::Slice(_) | Value::Ellipsis | Value::Number(_))
    });
    ensure!(plain, Unsupported, "this subscript inside vmap is not supported yet");
    let values =
        [Cow::Owned(Value::Tensor(mapped.tensor.clone())), Cow::Owned(Value::sequence(items))];
    let inner = Args { values: &values, dying: 0, wrote: Cell::new(false), ..*args };
    match super::subscript::get(&inner)? {
        Value::Tensor(tensor) => Ok(wrapped(tensor, mapped.levels.clone())),
        other => Ok(other),
    }
}
