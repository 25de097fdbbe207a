//! Matrix products and attention.

use super::args::Args;
use super::dim::Dim;
use super::problem::{Inferred, Problem};
use super::promote::{Operand, message_name, result_type, to_float};
use super::strides;
use super::value::{Shape, TensorType, Value};
use crate::ops::Op;

fn same_dtype(a: &TensorType, b: &TensorType) -> Inferred<()> {
    if a.dtype == b.dtype {
        return Ok(());
    }
    Err(Problem::invalid(format!(
        "expected m1 and m2 to have the same dtype, but got: {} != {}",
        message_name(a.dtype),
        message_name(b.dtype)
    )))
}

fn check_rank(tensor: &TensorType, rank: usize, name: &str) -> Inferred<()> {
    if tensor.rank() == rank {
        return Ok(());
    }
    Err(Problem::invalid(format!("{name} must be a {rank}D tensor, got {}D", tensor.rank())))
}

fn inner(args: &Args, left: &Dim, right: &Dim, a: &TensorType, b: &TensorType) -> Inferred<()> {
    if args.scope.same(left, right) {
        return Ok(());
    }
    Err(Problem::invalid(format!(
        "mat1 and mat2 shapes cannot be multiplied ({} and {})",
        strides::describe(&a.shape),
        strides::describe(&b.shape)
    )))
}

pub(super) fn linear(args: &Args) -> Inferred<Value> {
    let (input, weight) = (args.tensor("input")?, args.tensor("weight")?);
    same_dtype(input, weight)?;
    let (Some(features), Some(expected)) = (input.shape.last(), weight.shape.last()) else {
        return Err(Problem::invalid("both arguments to linear need to be at least 1D"));
    };
    inner(args, features, expected, input, weight)?;
    let mut shape: Shape = input.shape[..input.rank() - 1].into();
    match weight.rank() {
        1 => {}
        2 => shape.push(weight.shape[0].clone()),
        rank => {
            return Err(Problem::invalid(format!(
                "linear(): weight must be 1D or 2D, got {rank}D"
            )));
        }
    }
    let result = TensorType::contiguous(input.dtype, shape);
    if let Some(bias) = args.optional_tensor("bias")? {
        same_dtype(input, bias)?;
        args.scope.expand(bias, &result.shape)?;
    }
    Ok(result.into())
}

pub(super) fn bilinear(args: &Args) -> Inferred<Value> {
    let (left, right) = (args.tensor("input1")?, args.tensor("input2")?);
    let weight = args.tensor("weight")?;
    check_rank(weight, 3, "weight")?;
    let fits = left.rank() == right.rank()
        && left.rank() > 0
        && left.shape.last().is_some_and(|dim| args.scope.same(dim, &weight.shape[1]))
        && right.shape.last().is_some_and(|dim| args.scope.same(dim, &weight.shape[2]));
    if !fits {
        return Err(Problem::invalid("bilinear(): input sizes do not match the weight"));
    }
    let mut shape: Shape = left.shape[..left.rank() - 1].into();
    shape.push(weight.shape[0].clone());
    Ok(TensorType::contiguous(left.dtype, shape).into())
}

pub(super) fn matmul(args: &Args) -> Inferred<Value> {
    let (left, right) = (args.tensor("input")?, args.tensor("other")?);
    matrix_product(args, left, right).map(Value::Tensor)
}

/// Torch's `matmul`: vectors, matrices and broadcast batches of them.
pub(super) fn matrix_product(
    args: &Args,
    left: &TensorType,
    right: &TensorType,
) -> Inferred<TensorType> {
    if left.rank() == 0 || right.rank() == 0 {
        return Err(Problem::invalid(format!(
            "both arguments to matmul need to be at least 1D, but they are {}D and {}D",
            left.rank(),
            right.rank()
        )));
    }
    same_dtype(left, right)?;
    let columns = &left.shape[left.rank() - 1];
    let rows = &right.shape[right.rank().saturating_sub(2)];
    inner(args, columns, rows, left, right)?;
    let batch =
        |tensor: &TensorType| -> Shape { tensor.shape[..tensor.rank().saturating_sub(2)].into() };
    let mut shape = args.scope.broadcast([batch(left).as_slice(), batch(right).as_slice()])?;
    if left.rank() > 1 {
        shape.push(left.shape[left.rank() - 2].clone());
    }
    if right.rank() > 1 {
        shape.push(right.shape[right.rank() - 1].clone());
    }
    Ok(TensorType::contiguous(left.dtype, shape))
}

/// The products with fixed ranks.
pub(super) fn product(args: &Args) -> Inferred<Value> {
    let (names, left_rank, right_rank) = match args.op() {
        Op::Mm => (["input", "mat2"], 2, 2),
        Op::Bmm => (["input", "mat2"], 3, 3),
        Op::Mv => (["input", "vec"], 2, 1),
        Op::Dot => (["input", "tensor"], 1, 1),
        _ => (["input", "vec2"], 1, 1),
    };
    let (left, right) = (args.tensor(names[0])?, args.tensor(names[1])?);
    check_rank(left, left_rank, "the first argument")?;
    check_rank(right, right_rank, "the second argument")?;
    if args.op() == Op::Outer {
        let dtype = result_type(&[Operand::Tensor(left), Operand::Tensor(right)]);
        let shape = strides::shape([left.shape[0].clone(), right.shape[0].clone()]);
        return Ok(TensorType::contiguous(dtype, shape).into());
    }
    if args.op() == Op::Bmm && !args.scope.same(&left.shape[0], &right.shape[0]) {
        return Err(Problem::invalid(format!(
            "Expected size for first two dimensions of batch2 tensor to be: [{}, {}] but got: [{}, {}].",
            left.shape[0].size, left.shape[2].size, right.shape[0].size, right.shape[1].size
        )));
    }
    matrix_product(args, left, right).map(Value::Tensor)
}

/// A product added to something that broadcasts to it.
pub(super) fn sum_and_product(args: &Args) -> Inferred<Value> {
    let added = args.tensor("input")?;
    let (names, rank) = match args.op() {
        Op::Addmm => (["mat1", "mat2"], 2),
        _ => (["batch1", "batch2"], 3),
    };
    let (left, right) = (args.tensor(names[0])?, args.tensor(names[1])?);
    check_rank(left, rank, names[0])?;
    check_rank(right, rank, names[1])?;
    let mut product = matrix_product(args, left, right)?;
    if rank == 3 && left.shape[0].size != right.shape[0].size {
        return Err(Problem::invalid("batch1 and batch2 must have the same number of batches"));
    }
    if args.op() == Op::Addbmm {
        product = TensorType::contiguous(product.dtype, Shape::from(&product.shape[1..]));
    }
    if added.dtype != product.dtype {
        return Err(Problem::invalid(format!(
            "self and mat2 must have the same dtype, but got {} and {}",
            message_name(added.dtype),
            message_name(product.dtype)
        )));
    }
    args.scope.expand(added, &product.shape)?;
    Ok(product.into())
}

pub(super) fn tensordot(args: &Args) -> Inferred<Value> {
    let (left, right) = (args.tensor("a")?, args.tensor("b")?);
    same_dtype(left, right)?;
    let dims = args.value("dims")?;
    let axes = |value: &Value, rank: usize| -> Inferred<Vec<usize>> {
        let items = match value {
            Value::Sequence(items) => items.as_slice(),
            other => std::slice::from_ref(other),
        };
        items
            .iter()
            .map(|item| super::args::wrap_axis(args.as_int(item, "dims")?.size, rank))
            .collect()
    };
    let (first, second) = match &*dims {
        Value::Sequence(pair) if pair.len() == 2 => {
            (axes(&pair[0], left.rank())?, axes(&pair[1], right.rank())?)
        }
        number => {
            let count = usize::try_from(args.as_int(number, "dims")?.size)
                .ok()
                .filter(|count| *count <= left.rank().min(right.rank()))
                .ok_or_else(|| Problem::invalid("tensordot expects dims >= 0 that both have"))?;
            ((left.rank() - count..left.rank()).collect(), (0..count).collect())
        }
    };
    if first.len() != second.len() {
        return Err(Problem::invalid("both dimension lists should have same length"));
    }
    for (a, b) in first.iter().zip(&second) {
        let (Some(a), Some(b)) = (left.shape.get(*a), right.shape.get(*b)) else {
            return Err(Problem::invalid("tensordot: a dimension does not exist"));
        };
        if !args.scope.same(a, b) && a.size != 1 && b.size != 1 {
            return Err(Problem::invalid("contracted dimensions need to match"));
        }
    }
    let rest = |shape: &Shape, axes: &[usize]| -> Shape {
        let kept = shape.iter().enumerate().filter(|(axis, _)| !axes.contains(axis));
        kept.map(|(_, dim)| dim.clone()).collect()
    };
    let mut shape = rest(&left.shape, &first);
    shape.extend(rest(&right.shape, &second));
    Ok(TensorType::contiguous(left.dtype, shape).into())
}

pub(super) fn distance(args: &Args) -> Inferred<Value> {
    let (left, right) = (args.tensor("x1")?, args.tensor("x2")?);
    let dtype = to_float(result_type(&[Operand::Tensor(left), Operand::Tensor(right)]));
    if args.op() == Op::CosineSimilarity {
        let mut shape = args.scope.broadcast([left.shape.as_slice(), right.shape.as_slice()])?;
        let axis = args.axis("dim", shape.len())?;
        if axis < shape.len() {
            shape.remove(axis);
        }
        return Ok(TensorType::contiguous(dtype, shape).into());
    }
    if left.rank() < 2 || right.rank() < 2 {
        return Err(Problem::invalid("cdist only supports at least 2D tensors"));
    }
    let (a, b) = (left.rank(), right.rank());
    if !args.scope.same(&left.shape[a - 1], &right.shape[b - 1]) {
        return Err(Problem::invalid("X1 and X2 must have the same number of columns"));
    }
    let mut shape = args.scope.broadcast([&left.shape[..a - 2], &right.shape[..b - 2]])?;
    shape.push(left.shape[a - 2].clone());
    shape.push(right.shape[b - 2].clone());
    Ok(TensorType::contiguous(dtype, shape).into())
}

pub(super) fn attention(args: &Args) -> Inferred<Value> {
    match args.op() {
        Op::ScaledDotProductAttention => scaled_dot_product(args),
        Op::MultiHeadAttentionForward => multi_head(args),
        _ => native_multi_head(args),
    }
}

fn scaled_dot_product(args: &Args) -> Inferred<Value> {
    let (query, key, value) = (args.tensor("query")?, args.tensor("key")?, args.tensor("value")?);
    if [query, key, value].iter().any(|tensor| tensor.rank() < 2) {
        return Err(Problem::invalid(
            "scaled_dot_product_attention: query, key and value need at least 2 dimensions",
        ));
    }
    if query.dtype != key.dtype || query.dtype != value.dtype {
        return Err(Problem::invalid(format!(
            "Expected query, key, and value to have the same dtype, but got query.dtype: {} key.dtype: {} and value.dtype: {} instead.",
            query.dtype, key.dtype, value.dtype
        )));
    }
    let (q, k, v) = (query.rank(), key.rank(), value.rank());
    inner(args, &query.shape[q - 1], &key.shape[k - 1], query, key)?;
    inner(args, &key.shape[k - 2], &value.shape[v - 2], key, value)?;
    let grouped = args.flag("enable_gqa")? && q >= 3;
    let batch = |tensor: &TensorType| -> Shape {
        let mut batch: Shape = tensor.shape[..tensor.rank() - 2].into();
        // Grouped heads are repeated to the number of query heads.
        if grouped && let (Some(last), Some(heads)) = (batch.last_mut(), query.shape.get(q - 3)) {
            *last = heads.clone();
        }
        batch
    };
    let (query_batch, key_batch, value_batch) = (batch(query), batch(key), batch(value));
    let mut shape = args.scope.broadcast([
        query_batch.as_slice(),
        key_batch.as_slice(),
        value_batch.as_slice(),
    ])?;
    if let Some(mask) = args.optional_tensor("attn_mask")? {
        let mut scores = shape.clone();
        scores.push(query.shape[q - 2].clone());
        scores.push(key.shape[k - 2].clone());
        let fitted = args.scope.broadcast([scores.as_slice(), mask.shape.as_slice()])?;
        shape = fitted[..fitted.len() - 2].into();
    }
    shape.push(query.shape[q - 2].clone());
    shape.push(value.shape[v - 1].clone());
    Ok(TensorType::contiguous(query.dtype, shape).into())
}

fn multi_head(args: &Args) -> Inferred<Value> {
    let (query, key) = (args.tensor("query")?, args.tensor("key")?);
    let batched = query.rank() == 3;
    if !matches!(query.rank(), 2 | 3) || key.rank() != query.rank() {
        return Err(Problem::invalid("query should be unbatched 2D or batched 3D tensor"));
    }
    let embed = args.int("embed_dim_to_check")?;
    if !args.scope.same(&query.shape[query.rank() - 1], &embed) {
        return Err(Problem::invalid(format!(
            "was expecting embedding dimension of {}, but got {}",
            embed.size,
            query.shape[query.rank() - 1].size
        )));
    }
    let output = TensorType::contiguous(query.dtype, query.shape.clone());
    if !args.flag("need_weights")? {
        return Ok(Value::Sequence(vec![output.into(), Value::None]));
    }
    let mut extra = i64::from(args.flag("add_zero_attn")?);
    extra += i64::from(args.optional_tensor("bias_k")?.is_some());
    let mut shape = Shape::new();
    if batched {
        shape.push(query.shape[1].clone());
    }
    if !args.flag("average_attn_weights")? {
        shape.push(args.int("num_heads")?);
    }
    shape.push(query.shape[0].clone());
    shape.push(key.shape[0].offset(extra)?);
    let weights = TensorType::contiguous(query.dtype, shape);
    Ok(Value::Sequence(vec![output.into(), weights.into()]))
}

fn native_multi_head(args: &Args) -> Inferred<Value> {
    let (query, key) = (args.tensor("query")?, args.tensor("key")?);
    check_rank(query, 3, "query")?;
    check_rank(key, 3, "key")?;
    let output = TensorType::contiguous(query.dtype, query.shape.clone());
    if !args.flag("need_weights")? {
        // An empty tensor on meta, `None` elsewhere; nothing reads it.
        let none = TensorType::contiguous(query.dtype, strides::shape([Dim::fixed(0)]));
        return Ok(Value::Sequence(vec![output.into(), none.into()]));
    }
    let mut shape = strides::shape([query.shape[0].clone()]);
    if !args.flag("average_attn_weights")? {
        shape.push(args.int("num_head")?);
    }
    shape.push(query.shape[1].clone());
    shape.push(key.shape[1].clone());
    let weights = TensorType::contiguous(query.dtype, shape);
    Ok(Value::Sequence(vec![output.into(), weights.into()]))
}
