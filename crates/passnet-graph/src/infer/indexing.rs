//! Reads and writes by computed index, other than subscripts.

use super::args::Args;
use super::dim::Dim;
use super::pointwise::elementwise;
use super::problem::{Inferred, Problem};
use super::promote::message_name;
use super::strides;
use super::value::{Shape, TensorType, Value};
use crate::dtype::DType;
use crate::ops::Op;

fn check_index(index: &TensorType, what: &str) -> Inferred<()> {
    if matches!(index.dtype, DType::Int64 | DType::Int32) {
        return Ok(());
    }
    Err(Problem::invalid(format!(
        "{what}(): Expected dtype int32/int64 for index, but got {}",
        message_name(index.dtype)
    )))
}

pub(super) fn embedding(args: &Args) -> Inferred<Value> {
    let (index, weight) = (args.tensor("input")?, args.tensor("weight")?);
    check_index(index, "embedding")?;
    if args.op() == Op::EmbeddingBag {
        return embedding_bag(args, index, weight);
    }
    let [_, width] = weight.shape.as_slice() else {
        return Err(Problem::invalid("'weight' must be 2-D"));
    };
    let mut shape = index.shape.clone();
    shape.push(width.clone());
    Ok(TensorType::contiguous(weight.dtype, shape).into())
}

fn embedding_bag(args: &Args, index: &TensorType, weight: &TensorType) -> Inferred<Value> {
    let [_, width] = weight.shape.as_slice() else {
        return Err(Problem::invalid("'weight' must be 2-D"));
    };
    let bags = match (index.rank(), args.optional_tensor("offsets")?) {
        (2, _) => index.shape[0].clone(),
        (1, Some(offsets)) if offsets.rank() == 1 => {
            let last = i64::from(args.flag("include_last_offset")?);
            offsets.shape[0].offset(-last)?
        }
        _ => {
            return Err(Problem::invalid("input has to be 2D, or 1D with 1D offsets"));
        }
    };
    Ok(TensorType::contiguous(weight.dtype, strides::shape([bags, width.clone()])).into())
}

pub(super) fn one_hot(args: &Args) -> Inferred<Value> {
    let index = args.first_tensor()?;
    if index.dtype != DType::Int64 {
        return Err(Problem::invalid(
            "one_hot is only applicable to index tensor of type LongTensor.",
        ));
    }
    let mut classes = args.int("num_classes")?;
    if classes.size == -1 {
        let elements = args.scope.known_elements(index).ok_or_else(|| {
            Problem::unknown("the number of classes depends on the elements of a tensor")
        })?;
        classes = Dim::fixed(elements.iter().fold(-1.0, |a: f64, b| a.max(*b)) as i64 + 1);
    }
    if classes.size < 1 {
        return Err(Problem::invalid("num_classes should be positive"));
    }
    let mut shape = index.shape.clone();
    shape.push(classes);
    Ok(TensorType::contiguous(DType::Int64, shape).into())
}

pub(super) fn pick(args: &Args) -> Inferred<Value> {
    let input = args.tensor("input")?;
    let rank = input.rank();
    match args.op() {
        Op::Gather => {
            let (axis, index) = (args.axis("dim", rank)?, args.tensor("index")?);
            check_index(index, "gather")?;
            if index.elements() > 0 {
                check_within(input, index, axis)?;
            }
            Ok(TensorType::contiguous(input.dtype, index.shape.clone()).into())
        }
        Op::IndexSelect => {
            let (axis, index) = (args.axis("dim", rank)?, args.tensor("index")?);
            check_index(index, "index_select")?;
            if index.rank() > 1 {
                return Err(Problem::invalid("index_select(): Index is supposed to be a vector"));
            }
            let mut shape = input.shape.clone();
            if let Some(dim) = shape.get_mut(axis) {
                *dim = index.shape.first().cloned().unwrap_or(Dim::fixed(1));
            }
            Ok(TensorType::contiguous(input.dtype, shape).into())
        }
        Op::TakeAlongDim => take_along(args, input),
        Op::Take => {
            let index = args.tensor("index")?;
            Ok(TensorType::contiguous(input.dtype, index.shape.clone()).into())
        }
        _ => {
            let mask = args.tensor("mask")?;
            args.scope.broadcast([input.shape.as_slice(), mask.shape.as_slice()])?;
            Err(Problem::unknown("the size depends on how many elements of a mask are true"))
        }
    }
}

fn take_along(args: &Args, input: &TensorType) -> Inferred<Value> {
    let index = args.tensor("indices")?;
    check_index(index, "take_along_dim")?;
    let Some(axis) = args.optional_int("dim")? else {
        let count = strides::product(&index.shape)?;
        return Ok(TensorType::contiguous(input.dtype, strides::shape([count])).into());
    };
    let axis = super::args::wrap_axis(axis.size, input.rank())?;
    if index.rank() != input.rank() {
        return Err(Problem::invalid(format!(
            "torch.take_along_dim(): input and indices should have the same number of dimensions, but got {} dimensions for input, and {} dimensions for indices",
            input.rank(),
            index.rank()
        )));
    }
    let mut other = input.shape.clone();
    if let (Some(slot), Some(own)) = (other.get_mut(axis), index.shape.get(axis)) {
        *slot = own.clone();
    }
    let shape = args.scope.broadcast([other.as_slice(), index.shape.as_slice()])?;
    Ok(TensorType::contiguous(input.dtype, shape).into())
}

/// Except along one dimension, the index may not be larger than the tensor.
fn check_within(input: &TensorType, index: &TensorType, axis: usize) -> Inferred<()> {
    let (own, asked): (Shape, Shape) = (at_least_1d(input), at_least_1d(index));
    if own.len() != asked.len() {
        return Err(Problem::invalid(
            "Index tensor must have the same number of dimensions as input tensor",
        ));
    }
    for (place, (own, asked)) in own.iter().zip(&asked).enumerate() {
        if place != axis && asked.size > own.size {
            return Err(Problem::invalid(format!(
                "Size does not match at dimension {place} expected index {} to be no larger than self {} apart from dimension {axis}",
                strides::describe(&index.shape),
                strides::describe(&input.shape)
            )));
        }
    }
    Ok(())
}

fn at_least_1d(tensor: &TensorType) -> Shape {
    if tensor.rank() == 0 { strides::shape([Dim::fixed(1)]) } else { tensor.shape.clone() }
}

/// Writes by index give a tensor like the first argument.
pub(super) fn scatter(args: &Args) -> Inferred<Value> {
    let input = args.tensor("input")?;
    let op = args.op();
    if op == Op::MaskedScatter {
        let mask = args.tensor("mask")?;
        let shape = args.scope.broadcast([input.shape.as_slice(), mask.shape.as_slice()])?;
        return Ok(TensorType::contiguous(input.dtype, shape).into());
    }
    args.axis("dim", input.rank())?;
    let known: &[&str] = match op {
        Op::Scatter => &["add", "multiply"],
        _ => &["sum", "prod", "mean", "amax", "amin"],
    };
    if let Some(reduce) = args.text("reduce")?
        && !known.contains(&&*reduce)
    {
        return Err(Problem::invalid(format!(
            "reduce argument must be one of {}, got {reduce}",
            known.join(", ")
        )));
    }
    let index = args.tensor("index")?;
    if index.elements() > 0 {
        check_index(index, op.name())?;
    }
    let source = match op {
        Op::IndexFill => None,
        Op::IndexAdd | Op::IndexCopy => args.optional_tensor("source")?,
        _ => match args.value("src")? {
            std::borrow::Cow::Borrowed(Value::Tensor(source)) => Some(source),
            _ => None,
        },
    };
    if let Some(source) = source
        && source.dtype != input.dtype
    {
        return Err(Problem::invalid(format!(
            "{}(): Expected self.dtype to be equal to src.dtype",
            op.name()
        )));
    }
    Ok(strides::like_tensor(input, input.dtype).into())
}

pub(super) fn counting(args: &Args) -> Inferred<Value> {
    let input = args.tensor("input")?;
    let elements = args.scope.known_elements(input);
    if args.op() == Op::Bincount {
        let elements = elements
            .ok_or_else(|| Problem::unknown("the size depends on the elements of a tensor"))?;
        let largest = elements.iter().fold(-1.0, |a: f64, b| a.max(*b)) as i64;
        let count = args.int("minlength")?.max(&Dim::fixed(largest.saturating_add(1)))?;
        let dtype = match args.optional_tensor("weights")? {
            None => DType::Int64,
            Some(weights) if weights.dtype == DType::Float32 => DType::Float32,
            Some(_) => DType::Float64,
        };
        return Ok(TensorType::contiguous(dtype, strides::shape([count])).into());
    }
    let elements =
        elements.ok_or_else(|| Problem::unknown("the size depends on the elements of a tensor"))?;
    let count = Dim::fixed(elements.iter().filter(|element| **element != 0.0).count() as i64);
    if args.flag("as_tuple")? {
        let index = TensorType::contiguous(DType::Int64, strides::shape([count]));
        return Ok(Value::Sequence(vec![index.into(); input.rank().max(1)]));
    }
    let shape = strides::shape([count, Dim::fixed(input.rank() as i64)]);
    Ok(TensorType::contiguous(DType::Int64, shape).into())
}

/// `unique` and `unique_consecutive`: how many elements differ is known where the elements are.
pub(super) fn unique(args: &Args) -> Inferred<Value> {
    let input = args.tensor("input")?;
    let elements = args.scope.known_elements(input);
    let by_slices = args.optional_int("dim")?.is_some();
    let mut elements = elements
        .filter(|_| !by_slices)
        .ok_or_else(|| Problem::unknown("the size depends on the elements of a tensor"))?;
    if args.op() == Op::Unique {
        elements.sort_unstable_by(f64::total_cmp);
    }
    elements.dedup();
    let count = Dim::fixed(elements.len() as i64);
    let values = TensorType::contiguous(input.dtype, strides::shape([count.clone()]));
    let mut results = vec![Value::from(values)];
    if args.flag("return_inverse")? {
        results.push(TensorType::contiguous(DType::Int64, input.shape.clone()).into());
    }
    if args.flag("return_counts")? {
        results.push(TensorType::contiguous(DType::Int64, strides::shape([count])).into());
    }
    Ok(match results.len() {
        1 => results.remove(0),
        _ => Value::Sequence(results),
    })
}

pub(super) fn search(args: &Args) -> Inferred<Value> {
    let name = if args.op() == Op::Bucketize { "input" } else { "values" };
    let dtype = if args.flag("out_int32")? { DType::Int32 } else { DType::Int64 };
    match &*args.operand(name)? {
        Value::Tensor(values) => {
            if args.op() == Op::Bucketize {
                return Ok(elementwise(
                    args,
                    dtype,
                    &[&TensorType::contiguous(dtype, values.shape.clone())],
                )?
                .into());
            }
            Ok(TensorType::contiguous(dtype, values.shape.clone()).into())
        }
        _ => Ok(TensorType::contiguous(dtype, Shape::new()).into()),
    }
}
