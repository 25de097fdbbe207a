//! `x[...]` and `x[...] = v`: views for numbers and slices, copies for index tensors, elements of sequences.

use super::Args;
use super::args::as_int;
use crate::engine::Value;
use crate::native::error::{Result, TensorError, bail, ensure, err};
use crate::native::ops::indexing;
use crate::native::tensor::{Arg, Scalar, Tensor};
use passnet_graph::DType;

/// What a subscript selects: a view, and index tensors over some of its dimensions.
struct Selection {
    view: Tensor,
    picks: Vec<Option<Tensor>>,
}

pub(super) fn get(args: &Args<'_>) -> Result<Value> {
    let index = args.value("index");
    match args.value("input") {
        Value::Tensor(tensor) => {
            let selection = select(tensor, index)?;
            if selection.picks.iter().all(Option::is_none) {
                return Ok(selection.view.into());
            }
            Ok(indexing::index(&selection.view, &selection.picks)?.into())
        }
        Value::Sequence(items) => match index {
            Value::Slice(parts) => slice_of(items, parts),
            index => {
                let place = as_int("index", index)?;
                let wrapped = if place < 0 { place + items.len() as i64 } else { place };
                usize::try_from(wrapped)
                    .ok()
                    .and_then(|place| items.get(place))
                    .cloned()
                    .ok_or_else(|| err!(Index, "tuple index out of range"))
            }
        },
        other => bail!(DType, "'{}' object is not subscriptable", other.type_name()),
    }
}

fn slice_of(items: &[Value], parts: &[Value; 3]) -> Result<Value> {
    let length = items.len() as i64;
    let step = match &parts[2] {
        Value::None => 1,
        value => as_int("step", value)?,
    };
    ensure!(step != 0, Value, "slice step cannot be zero");
    let bound = |value: &Value, default: i64, low: i64, high: i64| -> Result<i64> {
        match value {
            Value::None => Ok(default),
            value => {
                let place = as_int("slice", value)?;
                let place = if place < 0 { place.saturating_add(length) } else { place };
                Ok(place.clamp(low, high))
            }
        }
    };
    let mut picked = Vec::new();
    if step > 0 {
        let (mut at, stop) =
            (bound(&parts[0], 0, 0, length)?, bound(&parts[1], length, 0, length)?);
        while at < stop {
            picked.push(items[at as usize].clone());
            at = at.saturating_add(step);
        }
    } else {
        let mut at = bound(&parts[0], length - 1, -1, length - 1)?;
        let stop = bound(&parts[1], -1, -1, length - 1)?;
        while at > stop {
            picked.push(items[at as usize].clone());
            at = at.saturating_add(step);
        }
    }
    Ok(Value::sequence(picked))
}

pub(super) fn set(args: &Args<'_>) -> Result<Value> {
    let tensor = match args.value("input") {
        Value::Tensor(tensor) => tensor,
        other => {
            bail!(DType, "'{}' object does not support item assignment here", other.type_name())
        }
    };
    args.wrote.set(true);
    let Selection { view, picks } = select(tensor, args.value("index"))?;
    let value = match args.operand("value")? {
        Arg::Tensor(value) => value.to_dtype(view.dtype())?,
        Arg::Scalar(value) => Tensor::full(&[], value, view.dtype())?,
    };
    if picks.iter().all(Option::is_none) {
        view.copy_from(&without_leading_ones(&value, view.ndim())?)?;
    } else {
        indexing::index_put(&view, &picks, &value, false)?;
    }
    Ok(tensor.clone().into())
}

/// Leading dimensions of one are dropped before a value is expanded.
fn without_leading_ones(value: &Tensor, rank: usize) -> Result<Tensor> {
    let mut value = value.clone();
    while value.ndim() > rank && value.shape()[0] == 1 {
        value = value.select(0, 0)?;
    }
    Ok(value)
}

fn select(tensor: &Tensor, index: &Value) -> Result<Selection> {
    let one = [index.clone()];
    let items: &[Value] = match index {
        Value::Sequence(items) => items,
        _ => &one,
    };
    let too_many = || err!(Index, "too many indices for tensor of dimension {}", tensor.ndim());
    let specified = count_specified(items)?;
    if specified > tensor.ndim() {
        return Err(too_many());
    }
    let mut view = tensor.clone();
    let mut picks: Vec<Option<Tensor>> = Vec::new();
    let mut put = |axis: usize, pick: Tensor| {
        picks.resize(picks.len().max(axis), None);
        picks.push(Some(pick));
    };
    let mut axis = 0;
    for item in items {
        let dim = axis as i64;
        match item {
            Value::Ellipsis => axis += tensor.ndim() - specified,
            Value::None => {
                view = view.unsqueeze(dim)?;
                axis += 1;
            }
            Value::Slice(parts) => {
                view = slice(&view, dim, parts)?;
                axis += 1;
            }
            Value::Number(Scalar::Bool(truth)) => {
                view = view.unsqueeze(dim)?;
                put(axis, Tensor::full(&[1], Scalar::Bool(*truth), DType::Bool)?);
                axis += 1;
            }
            Value::Number(Scalar::Int(place)) => view = view.select(dim, *place)?,
            Value::Tensor(place) if place.ndim() == 0 && is_number(place.dtype()) => {
                view = view.select(dim, place.item()?.to_i64())?;
            }
            Value::Tensor(place) => {
                let mask = matches!(place.dtype(), DType::Bool | DType::UInt8);
                if !mask {
                    put(axis, place.clone());
                    axis += 1;
                    continue;
                }
                let mask = place.to_dtype(DType::Bool)?;
                if mask.ndim() == 0 {
                    view = view.unsqueeze(dim)?;
                    put(axis, mask.unsqueeze(0)?);
                    axis += 1;
                    continue;
                }
                check_mask(&mask, &view, axis)?;
                // A mask over several dimensions is one index tensor for each of them.
                for column in indexing::nonzero(&mask)?.unbind(1)? {
                    put(axis, column);
                    axis += 1;
                }
            }
            Value::Sequence(places) => {
                put(axis, list_index(places)?);
                axis += 1;
            }
            other => return Err(bad_index(other)),
        }
    }
    Ok(Selection { view, picks })
}

fn is_number(dtype: DType) -> bool {
    dtype.is_integer() && dtype != DType::UInt8
}

fn check_mask(mask: &Tensor, view: &Tensor, axis: usize) -> Result<()> {
    for (offset, size) in mask.shape().iter().enumerate() {
        ensure!(
            view.shape().get(axis + offset) == Some(size),
            Index,
            "The shape of the mask {:?} at index {offset} does not match the shape of the indexed tensor {:?} at index {}",
            mask.shape(),
            view.shape(),
            axis + offset
        );
    }
    Ok(())
}

fn slice(view: &Tensor, dim: i64, parts: &[Value; 3]) -> Result<Tensor> {
    let bound = |value: &Value| match value {
        Value::None => Ok(None),
        value => as_int("slice", value).map(Some),
    };
    let step = bound(&parts[2])?.unwrap_or(1);
    view.slice(dim, bound(&parts[0])?, bound(&parts[1])?, step)
}

/// How many dimensions of the tensor the items stand for.
fn count_specified(items: &[Value]) -> Result<usize> {
    let mut specified = 0;
    let mut ellipses = 0;
    for item in items {
        specified += match item {
            Value::None | Value::Number(Scalar::Bool(_)) => 0,
            Value::Ellipsis => {
                ellipses += 1;
                0
            }
            Value::Tensor(mask) if matches!(mask.dtype(), DType::Bool | DType::UInt8) => {
                mask.ndim()
            }
            _ => 1,
        };
    }
    ensure!(ellipses <= 1, Index, "an index can only have a single ellipsis ('...')");
    Ok(specified)
}

fn bad_index(value: &Value) -> TensorError {
    err!(
        Index,
        "only integers, slices (`:`), ellipsis (`...`), None and long or byte Variables are valid indices (got {})",
        value.type_name()
    )
}

/// A nested list of numbers as an index tensor.
fn list_index(places: &[Value]) -> Result<Tensor> {
    let bools: Option<Vec<Scalar>> = places
        .iter()
        .map(|place| match place {
            Value::Number(number @ Scalar::Bool(_)) => Some(*number),
            _ => None,
        })
        .collect();
    if let Some(mask) = bools.filter(|mask| !mask.is_empty()) {
        let mask = crate::native::ops::creation::tensor(&mask, &[mask.len()], DType::Bool)?;
        return indexing::nonzero(&mask)?.reshape(&[-1]);
    }
    super::creation::nested(
        &Value::sequence(places.iter().cloned()),
        Some(DType::Int64),
        DType::Float32,
    )
}
