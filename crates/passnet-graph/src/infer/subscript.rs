//! `x[...]`: reads and writes by integers, slices, `None`, `...`, masks and index tensors.

use super::args::Args;
use super::dim::Dim;
use super::problem::{Inferred, Problem};
use super::strides;
use super::value::{Scalar, Shape, Strides, TensorType, Value};
use crate::dtype::DType;
use crate::graph::Arg;
use crate::ops::Op;
use crate::view::region::{narrowed, permuted, selected, unsqueezed};
use crate::view::shape::{self, Run};
use smallvec::SmallVec;
use std::borrow::Cow;

/// An index that copies: a tensor of places, or a mask over one or more dimensions.
struct TensorIndex {
    shape: Shape,
    strides: Strides,
    /// Dimensions of the indexed tensor that it stands for.
    spans: usize,
}

pub(super) fn get(args: &Args) -> Inferred<Value> {
    let input = args.value("input")?;
    match &*input {
        Value::Tensor(tensor) => index(args, tensor, args.bound.arg("index")).map(Value::Tensor),
        Value::Sequence(items) => sequence_item(args, items),
        other => {
            Err(Problem::invalid(format!("'{}' object is not subscriptable", other.type_name())))
        }
    }
}

fn sequence_item(args: &Args, items: &[Value]) -> Inferred<Value> {
    let index = args.value("index")?;
    if let Value::Slice(parts) = &*index {
        let size = Dim::fixed(items.len() as i64);
        let run = slice(args, parts, &size)?;
        let picked = (0..run.length.size).map(|i| (run.start + i * run.step) as usize);
        return Ok(Value::Sequence(picked.filter_map(|i| items.get(i).cloned()).collect()));
    }
    let place = args.as_int(&index, "index")?.size;
    let wrapped = if place < 0 { place + items.len() as i64 } else { place };
    usize::try_from(wrapped)
        .ok()
        .and_then(|place| items.get(place))
        .cloned()
        .ok_or_else(|| Problem::invalid("tuple index out of range"))
}

/// A slice of a dimension.
fn slice(args: &Args, parts: &[Value; 3], size: &Dim) -> Inferred<Run<Dim>> {
    let number = |value: &Value, name: &str| match value {
        Value::None => Ok(None),
        value => args.as_int(value, name).map(Some),
    };
    let step = number(&parts[2], "step")?.map_or(1, |step| step.size);
    Ok(shape::slice(size, number(&parts[0], "slice")?, number(&parts[1], "slice")?, step)?)
}

/// The parts of a subscript: a tuple's entries, or the one index itself.
fn parts<'a>(args: &Args<'a, '_>, index: &'a Arg) -> Inferred<SmallVec<[Cow<'a, Value>; 6]>> {
    let items = match index {
        Arg::Tuple(items) => items,
        // A list that holds more than numbers is read as a tuple.
        Arg::List(items) if !items.iter().all(|i| matches!(i, Arg::Int(_) | Arg::Bool(_))) => items,
        Arg::Node(_) => {
            return Ok(match args.lookup(index)? {
                Cow::Borrowed(Value::Sequence(items)) => items.iter().map(Cow::Borrowed).collect(),
                value => SmallVec::from_iter([value]),
            });
        }
        other => return Ok(SmallVec::from_iter([args.lookup(other)?])),
    };
    items.iter().map(|item| args.lookup(item)).collect()
}

fn index<'a>(args: &Args<'a, '_>, tensor: &TensorType, index: &'a Arg) -> Inferred<TensorType> {
    let items = parts(args, index)?;
    let mut view = tensor.clone();
    let mut picks: SmallVec<[Option<TensorIndex>; 5]> = SmallVec::new();
    let specified = count_specified(&items)?;
    let too_many =
        || Problem::invalid(format!("too many indices for tensor of dimension {}", tensor.rank()));
    if specified > tensor.rank() {
        return Err(too_many());
    }
    let mut axis = 0;
    let mut remaining = tensor.rank();
    for item in &items {
        match &**item {
            Value::Ellipsis => {
                let covered = tensor.rank() - specified;
                axis += covered;
                remaining -= covered;
            }
            Value::None => {
                view = unsqueezed(&view, axis);
                axis += 1;
            }
            Value::Slice(parts) => {
                let run = slice(args, parts, view.shape.get(axis).ok_or_else(too_many)?)?;
                view = narrowed(&view, axis, run);
                axis += 1;
                remaining -= 1;
            }
            Value::Scalar(Scalar::Bool(truth)) => {
                view = unsqueezed(&view, axis);
                let count = truth.ok_or_else(unknown_mask)?;
                put(&mut picks, axis, count_index(i64::from(count), 1));
                axis += 1;
            }
            Value::Scalar(number) => {
                let size = view.shape.get(axis).ok_or_else(too_many)?.size;
                match number.as_dim() {
                    Some(place) => view = selected(&view, axis, place.size)?,
                    None if matches!(number, Scalar::Int(_)) => {
                        view = selected_somewhere(&view, axis, size)?;
                    }
                    None => return Err(bad_index("float")),
                }
                remaining -= 1;
            }
            Value::Tensor(place) => {
                let is_number = place.rank() == 0
                    && place.mapped.is_empty()
                    && place.dtype.is_integer()
                    && place.dtype != DType::UInt8;
                if is_number {
                    let size = view.shape.get(axis).ok_or_else(too_many)?.size;
                    view = match args.scope.known_scalar(place) {
                        Some(place) => selected(&view, axis, place as i64)?,
                        None => selected_somewhere(&view, axis, size)?,
                    };
                    remaining -= 1;
                } else {
                    let pick = tensor_index(args, &view, axis, place)?;
                    if pick.spans == 0 {
                        view = unsqueezed(&view, axis);
                    }
                    let spans = pick.spans;
                    remaining = remaining.saturating_sub(spans);
                    put(&mut picks, axis, TensorIndex { spans: spans.max(1), ..pick });
                    axis += spans.max(1);
                }
            }
            Value::Sequence(places) => {
                put(&mut picks, axis, list_index(places)?);
                axis += 1;
                remaining -= 1;
            }
            other => return Err(bad_index(other.type_name())),
        }
        if remaining > tensor.rank() {
            return Err(too_many());
        }
    }
    if picks.iter().all(Option::is_none) {
        return Ok(view);
    }
    gather(args, &view, picks)
}

/// How many dimensions of the tensor the items stand for.
fn count_specified(items: &[Cow<'_, Value>]) -> Inferred<usize> {
    let mut specified = 0;
    let mut ellipses = 0;
    for item in items {
        specified += match &**item {
            Value::None | Value::Scalar(Scalar::Bool(_)) => 0,
            Value::Ellipsis => {
                ellipses += 1;
                0
            }
            Value::Tensor(mask) if matches!(mask.dtype, DType::Bool | DType::UInt8) => mask.rank(),
            _ => 1,
        };
    }
    if ellipses > 1 {
        return Err(Problem::invalid("an index can only have a single ellipsis ('...')"));
    }
    Ok(specified)
}

fn bad_index(kind: &str) -> Problem {
    Problem::invalid(format!(
        "only integers, slices (`:`), ellipsis (`...`), None and long or byte Variables are valid indices (got {kind})"
    ))
}

fn unknown_mask() -> Problem {
    Problem::unknown("the size depends on how many elements of a mask are true")
}

fn selected_somewhere(view: &TensorType, axis: usize, size: i64) -> Inferred<TensorType> {
    if size == 0 {
        return Err(Problem::invalid("index 0 is out of bounds for a dimension with size 0"));
    }
    Ok(TensorType { memory: None, ..selected(view, axis, 0)? })
}

fn put(picks: &mut SmallVec<[Option<TensorIndex>; 5]>, axis: usize, pick: TensorIndex) {
    while picks.len() <= axis {
        picks.push(None);
    }
    picks[axis] = Some(pick);
}

fn count_index(count: i64, spans: usize) -> TensorIndex {
    TensorIndex {
        shape: strides::shape([Dim::fixed(count)]),
        strides: SmallVec::from_elem(1, 1),
        spans,
    }
}

/// `x[[0, 2]]`.
fn list_index(places: &[Value]) -> Inferred<TensorIndex> {
    if places.iter().all(|place| matches!(place, Value::Scalar(Scalar::Bool(_))))
        && !places.is_empty()
    {
        let is_true = |place: &&Value| matches!(place, Value::Scalar(Scalar::Bool(Some(true))));
        return Ok(count_index(places.iter().filter(is_true).count() as i64, 1));
    }
    if places.iter().all(|place| matches!(place, Value::Scalar(Scalar::Int(_)))) {
        return Ok(count_index(places.len() as i64, 1));
    }
    let rows: Vec<TensorIndex> = places
        .iter()
        .map(|row| match row {
            Value::Sequence(items) => list_index(items),
            other => Err(bad_index(other.type_name())),
        })
        .collect::<Inferred<_>>()?;
    let mut shape = strides::shape([Dim::fixed(rows.len() as i64)]);
    shape.extend(rows.first().map(|row| row.shape.clone()).unwrap_or_default());
    let strides = strides::contiguous(&shape);
    Ok(TensorIndex { shape, strides, spans: 1 })
}

fn tensor_index(
    args: &Args,
    view: &TensorType,
    axis: usize,
    place: &TensorType,
) -> Inferred<TensorIndex> {
    match place.dtype {
        DType::Bool | DType::UInt8 => {
            for (offset, dim) in place.shape.iter().enumerate() {
                let own = view.shape.get(axis + offset);
                if !own.is_some_and(|own| args.scope.same(own, dim)) {
                    return Err(Problem::invalid(format!(
                        "The shape of the mask {} at index {offset} does not match the shape of the indexed tensor {} at index {}",
                        strides::describe(&place.shape),
                        strides::describe(&view.shape),
                        axis + offset
                    )));
                }
            }
            let elements = args.scope.known_elements(place).ok_or_else(unknown_mask)?;
            let count = elements.iter().filter(|element| **element != 0.0).count() as i64;
            Ok(count_index(count, place.rank()))
        }
        dtype if dtype.is_integer() => {
            if axis >= view.rank() {
                return Err(Problem::invalid("too many indices for the tensor"));
            }
            Ok(TensorIndex { shape: place.shape.clone(), strides: place.strides.clone(), spans: 1 })
        }
        _ => {
            Err(Problem::invalid("tensors used as indices must be long, int, byte or bool tensors"))
        }
    }
}

/// The copy made by index tensors: neighbours are replaced where they stand, others move to the front.
fn gather(
    args: &Args,
    view: &TensorType,
    picks: SmallVec<[Option<TensorIndex>; 5]>,
) -> Inferred<TensorType> {
    let mut per_axis = by_axis(&picks);
    let chosen: SmallVec<[TensorIndex; 4]> = picks.into_iter().flatten().collect();
    per_axis.resize(view.rank().max(per_axis.len()), false);
    if per_axis.len() > view.rank() {
        return Err(Problem::invalid("too many indices for the tensor"));
    }
    let shapes: Vec<String> = chosen.iter().map(|pick| strides::describe(&pick.shape)).collect();
    let replaced = args.scope.broadcast(chosen.iter().map(|pick| pick.shape.as_slice()));
    let replaced = replaced.map_err(|_| {
        Problem::invalid(format!(
            "shape mismatch: indexing tensors could not be broadcast together with shapes {}",
            shapes.join(", ")
        ))
    })?;
    let indexed: SmallVec<[usize; 6]> = (0..view.rank()).filter(|axis| per_axis[*axis]).collect();
    let adjacent = indexed.windows(2).all(|pair| pair[1] == pair[0] + 1);
    let (source, before) = match (adjacent, indexed.first()) {
        (true, Some(first)) => (view.clone(), *first),
        _ => {
            let rest = (0..view.rank()).filter(|axis| !per_axis[*axis]);
            let order: SmallVec<[usize; 6]> = indexed.iter().copied().chain(rest).collect();
            (permuted(view, &order), 0)
        }
    };
    let after = before + indexed.len();
    let mut shape: Shape = source.shape[..before].into();
    shape.extend(replaced.iter().cloned());
    shape.extend(source.shape[after..].iter().cloned());
    let mut steps: Strides = source.strides[..before].into();
    steps.extend(std::iter::repeat_n(0, replaced.len()));
    steps.extend_from_slice(&source.strides[after..]);
    // The layout is that of a loop over the source and the index tensors.
    let mut operands: Vec<(Shape, Strides)> = vec![(shape.clone(), steps)];
    let trailing = source.rank() - after;
    for mut pick in chosen {
        pick.shape.extend(std::iter::repeat_n(Dim::fixed(1), trailing));
        pick.strides.extend(std::iter::repeat_n(1, trailing));
        operands.push((pick.shape, pick.strides));
    }
    let layouts: Vec<(&[Dim], &[i64])> =
        operands.iter().map(|(shape, steps)| (shape.as_slice(), steps.as_slice())).collect();
    let steps = strides::elementwise(&shape, &layouts);
    Ok(TensorType::strided(view.dtype, shape, steps))
}

/// Which dimensions are indexed; a mask over several stands for one index per dimension.
fn by_axis(picks: &[Option<TensorIndex>]) -> SmallVec<[bool; 6]> {
    let mut indexed = SmallVec::new();
    while let Some(pick) = picks.get(indexed.len()) {
        match pick {
            None => indexed.push(false),
            Some(pick) => indexed.extend(std::iter::repeat_n(true, pick.spans.max(1))),
        }
    }
    indexed
}

/// `x[i] = v`: the value must fit what the index selects; the tensor keeps its type.
pub(super) fn set(args: &Args) -> Inferred<Value> {
    let input = args.value("input")?;
    let tensor = match &*input {
        Value::Tensor(tensor) => tensor,
        other => {
            return Err(Problem::invalid(format!(
                "'{}' object does not support item assignment here",
                other.type_name()
            )));
        }
    };
    let value = args.operand("value")?;
    match index(args, tensor, args.bound.arg("index")) {
        Ok(target) => {
            if let Value::Tensor(value) = &*value {
                fits(args, value, &target.shape)?;
            }
        }
        // A mask selects an unknown number of elements; the tensor's type does not depend on it.
        Err(Problem::Unknown(_)) => {}
        Err(problem) => return Err(problem),
    }
    Ok(Value::Tensor(tensor.clone()))
}

/// Leading dimensions of one are dropped before the value is expanded.
fn fits(args: &Args, value: &TensorType, target: &[Dim]) -> Inferred<()> {
    let mut value = value.clone();
    while value.rank() > target.len() && value.shape[0].size == 1 {
        value.shape.remove(0);
        value.strides.remove(0);
    }
    args.scope.expand(&value, target).map(|_| ())
}

/// `aten.index`: like a subscript by a list of tensors and `None`.
pub(super) fn by_tensors(args: &Args) -> Inferred<Value> {
    let input = args.tensor("input")?;
    let mut picks: SmallVec<[Option<TensorIndex>; 5]> = SmallVec::new();
    let mut axis = 0;
    for place in args.optional_tensors("indices")? {
        match place {
            None => {
                while picks.len() <= axis {
                    picks.push(None);
                }
                axis += 1;
            }
            Some(place) => {
                let pick = tensor_index(args, input, axis, place)?;
                let spans = pick.spans.max(1);
                put(&mut picks, axis, pick);
                axis += spans;
            }
        }
    }
    if args.op() == Op::IndexPut {
        return Ok(strides::like_tensor(input, input.dtype).into());
    }
    gather(args, input, picks).map(Value::Tensor)
}
