//! softmax(q·kᵀ·scale + mask)·v, a block of query rows at a time: the full matrix of scores is never stored.

use crate::native::error::{Result, ensure};
use crate::native::ops::gemm::{Matrix, Planes, Sizes, Target, multiply};
use crate::native::ops::reduce::{self, Extreme, Ordered, exponentials, extreme_run};
use crate::native::ops::{matmul, movement, pointwise};
use crate::native::random::Generator;
use crate::native::tensor::convert::{narrow, widen};
use crate::native::tensor::element::Real;
use crate::native::tensor::layout::{Dims, broadcast_shapes, numel};
use crate::native::tensor::{Buffer, Tensor};
use half::{bf16, f16};
use passnet_cpu::parallel::for_each_weighted_chunk;
use passnet_graph::DType;

/// Options of `torch.nn.functional.scaled_dot_product_attention`.
#[derive(Debug, Clone, Default)]
pub struct Attention {
    /// Truths that keep a score, or numbers that are added to it.
    pub mask: Option<Tensor>,
    /// Whether a query sees no key behind its own place.
    pub causal: bool,
    /// The default is one over the square root of the head size.
    pub scale: Option<f64>,
    /// Key and value heads are repeated to match the query's.
    pub grouped: bool,
}

/// Query rows handled together.
const ROWS: usize = 64;

/// `torch.nn.functional.scaled_dot_product_attention`, without dropout.
pub fn scaled_dot_product_attention(
    query: &Tensor,
    key: &Tensor,
    value: &Tensor,
    options: &Attention,
) -> Result<Tensor> {
    let dtype = query.dtype();
    ensure!(
        dtype == key.dtype() && dtype == value.dtype(),
        DType,
        "Expected query, key, and value to have the same dtype, but got query.dtype: {dtype} key.dtype: {} and value.dtype: {} instead.",
        key.dtype(),
        value.dtype()
    );
    ensure!(dtype.is_float(), DType, "attention is not implemented for '{dtype}'");
    ensure!(
        query.ndim() >= 2 && key.ndim() >= 2 && value.ndim() >= 2,
        Shape,
        "Expected query, key, and value to all be at least 2 dimensional, but got query.dim: {}, key.dim: {} and value.dim: {} instead.",
        query.ndim(),
        key.ndim(),
        value.ndim()
    );
    ensure!(
        options.mask.is_none() || !options.causal,
        Value,
        "_scaled_dot_product_attention: Explicit attn_mask should not be set when is_causal=True"
    );
    let (key, value) = if options.grouped {
        let heads = query.size(-3)?;
        (repeat_heads(key, heads)?, repeat_heads(value, heads)?)
    } else {
        (key.clone(), value.clone())
    };
    match dtype {
        DType::Float64 => attend::<f64>(query, &key, &value, options),
        _ => attend::<f32>(query, &key, &value, options),
    }
}

/// Attention in training: the weights are stored, some of them dropped, the others scaled up.
pub fn attention_with_dropout(
    query: &Tensor,
    key: &Tensor,
    value: &Tensor,
    options: &Attention,
    p: f64,
    generator: &mut Generator,
) -> Result<Tensor> {
    ensure!(query.ndim() >= 2 && key.ndim() >= 2, Shape, "attention needs matrices");
    let dtype = query.dtype();
    let wide = if dtype == DType::Float64 { DType::Float64 } else { DType::Float32 };
    let heads = if options.grouped { query.size(-3)? } else { 0 };
    let prepare = |t: &Tensor| -> Result<Tensor> {
        let t = t.to_dtype(wide)?;
        if options.grouped { repeat_heads(&t, heads) } else { Ok(t) }
    };
    let (q, k, v) = (query.to_dtype(wide)?, prepare(key)?, prepare(value)?);
    let size = query.size(-1)?;
    let scale = options.scale.unwrap_or(1.0 / (size as f64).sqrt());
    let scaled = pointwise::mul(&q.into(), &scale.into())?;
    let mut scores = matmul::matmul(&scaled, &k.transpose(-2, -1)?)?;
    let mask = match (&options.mask, options.causal) {
        (Some(mask), _) => Some(additive_mask(mask, dtype)?),
        (None, true) => {
            let ones = Tensor::full(&[query.size(-2)?, key.size(-2)?], true.into(), DType::Bool)?;
            Some(additive_mask(&movement::triangle(&ones, movement::Triangle::Lower, 0)?, dtype)?)
        }
        (None, false) => None,
    };
    if let Some(mask) = mask {
        scores = pointwise::add(&scores.into(), &mask.to_dtype(wide)?.into(), 1i64.into())?;
    }
    let weights = drop_weights(&reduce::softmax(&scores, -1, None)?, p, generator)?;
    matmul::matmul(&weights, &v)?.to_dtype(dtype)
}

pub(super) fn drop_weights(weights: &Tensor, p: f64, generator: &mut Generator) -> Result<Tensor> {
    if p >= 1.0 {
        return Tensor::zeros(weights.shape(), weights.dtype());
    }
    let mask = generator.bernoulli_like(weights, 1.0 - p)?;
    let mask = pointwise::div(&mask.into(), &(1.0 - p).into())?;
    pointwise::mul(&weights.into(), &mask.into())
}

fn repeat_heads(tensor: &Tensor, heads: usize) -> Result<Tensor> {
    let own = tensor.size(-3)?;
    ensure!(
        own > 0 && heads.is_multiple_of(own),
        Shape,
        "Number of heads in key and value must divide the number of heads in query"
    );
    movement::repeat_interleave(tensor, heads / own, Some(-3))
}

fn attend<T: Real + Ordered>(
    query: &Tensor,
    key: &Tensor,
    value: &Tensor,
    options: &Attention,
) -> Result<Tensor> {
    let dtype = query.dtype();
    let last = |t: &Tensor| (t.shape()[t.ndim() - 2], t.shape()[t.ndim() - 1]);
    let ((rows, size), (length, key_size), (value_rows, value_size)) =
        (last(query), last(key), last(value));
    ensure!(
        size == key_size && length == value_rows,
        Shape,
        "query of {:?}, key of {:?} and value of {:?} do not fit",
        query.shape(),
        key.shape(),
        value.shape()
    );
    let lead = |t: &Tensor| -> Dims { t.shape()[..t.ndim() - 2].into() };
    let batch = broadcast_shapes(&[&lead(query), &lead(key), &lead(value)])?;
    let expand = |t: &Tensor, a: usize, b: usize| t.expand_to(&shape_of(&batch, a, b));
    let (q, k, v) = (
        expand(query, rows, size)?,
        expand(key, length, size)?,
        expand(value, length, value_size)?,
    );
    let mask = options.mask.as_ref().map(|m| additive_mask(m, dtype)).transpose()?;
    let mask = mask.as_ref().map(|m| expand(m, rows, length)).transpose()?;
    let mut out = Buffer::<T>::new(numel(&batch)? * rows * value_size)?;
    let fused = takes_fused_path(query, key, value);
    if !out.is_empty() {
        let heads = Heads {
            queries: Planes::new(&q)?,
            keys: Planes::new(&k)?,
            values: Planes::new(&v)?,
            mask: mask.as_ref().map(Planes::new).transpose()?,
            causal: options.causal,
            scale: T::constant(options.scale.unwrap_or(1.0 / (size as f64).sqrt())),
            // The fused kernel brings the weights to half precision before they meet the values.
            weights: if fused { dtype } else { T::DTYPE },
            size,
            length,
            value_size,
        };
        let weight = length.saturating_mul(size + value_size) / value_size.max(1) + 1;
        for_each_weighted_chunk(&mut out, rows * value_size, weight, |head, plane| {
            for_each_weighted_chunk(plane, ROWS * value_size, weight, |block, target| {
                heads.attend_block(head, block * ROWS, target);
            });
        });
    }
    let result = Tensor::from_buffer(out, &shape_of(&batch, rows, value_size))?;
    if !fused || result.numel() == 0 {
        return result.to_dtype(dtype);
    }
    // The fused kernel's result lies in memory as the query does.
    let order = query.memory_order();
    Ok(Tensor::from_ordered(result.permute_dims(&order).dense_copy(dtype)?, &order))
}

/// What all heads of one attention read, and how.
struct Heads<'a, T> {
    queries: Planes<'a, T>,
    keys: Planes<'a, T>,
    values: Planes<'a, T>,
    mask: Option<Planes<'a, T>>,
    causal: bool,
    scale: T,
    /// The precision of the weights.
    weights: DType,
    /// Elements of a query and of a key.
    size: usize,
    /// How many keys and values there are.
    length: usize,
    value_size: usize,
}

impl<T: Real + Ordered> Heads<'_, T> {
    /// Rows of one head's result, from `first` on, as many as the target has.
    fn attend_block(&self, head: usize, first: usize, target: &mut [T]) {
        let count = target.len() / self.value_size;
        // A causal row sees no key after its own position.
        let seen = if self.causal { self.length.min(first + count) } else { self.length };
        let mut scores = vec![T::ZERO; count * seen];
        multiply(
            Sizes { m: count, n: seen, k: self.size },
            Target::new(&mut scores, seen),
            false,
            self.queries.matrix(head, first),
            self.keys.matrix(head, 0).transposed(),
            false,
        );
        let mut sums = [T::ONE; ROWS];
        let mut shifted = vec![T::ZERO; seen];
        for (r, row) in scores.chunks_mut(seen.max(1)).enumerate() {
            self.hide(head, first + r, row);
            sums[r] = soften(row, &mut shifted, self.weights);
        }
        multiply(
            Sizes { m: count, n: self.value_size, k: seen },
            Target::new(target, self.value_size),
            false,
            Matrix::rows(&scores, seen),
            self.values.matrix(head, 0),
            false,
        );
        for (row, sum) in target.chunks_mut(self.value_size).zip(sums) {
            for value in row.iter_mut() {
                *value = *value / sum;
            }
        }
    }

    /// Scales the scores of a query and adds its mask.
    fn hide(&self, head: usize, query: usize, row: &mut [T]) {
        for value in row.iter_mut() {
            *value = *value * self.scale;
        }
        if let Some(mask) = &self.mask {
            let mask = mask.matrix(head, query);
            for (i, value) in row.iter_mut().enumerate() {
                *value = *value + mask.data[i * mask.column_stride];
            }
        }
        if self.causal {
            let visible = (query + 1).min(row.len());
            row[visible..].fill(-T::INFINITY);
        }
    }
}

fn shape_of(batch: &[usize], rows: usize, columns: usize) -> Dims {
    let mut shape: Dims = batch.into();
    shape.extend([rows, columns]);
    shape
}

/// Whether torch would use its fused CPU kernel: it rounds and lays out its result differently from the plain one.
fn takes_fused_path(query: &Tensor, key: &Tensor, value: &Tensor) -> bool {
    let all = [query, key, value];
    all.iter().all(|t| t.ndim() == 4 && t.strides()[3] == 1 && t.shape()[..2] == query.shape()[..2])
        && query.shape()[3] == value.shape()[3]
}

/// A bool mask becomes zeros and minus infinity.
fn additive_mask(mask: &Tensor, dtype: DType) -> Result<Tensor> {
    if mask.dtype() == DType::Bool {
        let zero = Tensor::scalar(0.0, DType::Float32)?;
        let none = Tensor::scalar(f64::NEG_INFINITY, DType::Float32)?;
        return crate::native::ops::pointwise::where_select(mask, &zero.into(), &none.into());
    }
    ensure!(
        mask.dtype() == dtype || mask.dtype() == DType::Float32,
        DType,
        "Expected attn_mask dtype to be bool or float or to match query dtype, but got attn_mask.dtype: {} and  query.dtype: {dtype} instead.",
        mask.dtype()
    );
    Ok(mask.clone())
}

/// Replaces a row of scores by unnormalised weights and gives their sum. A row that sees nothing gets weights of zero.
fn soften<T: Real + Ordered>(row: &mut [T], scratch: &mut [T], dtype: DType) -> T {
    let most = extreme_run(Extreme::Max, T::LOWEST, row);
    if most == -T::INFINITY {
        row.fill(T::ZERO);
        return T::ONE;
    }
    let sum = exponentials(row, most, scratch);
    match dtype {
        DType::Float16 => round_through::<T, f16>(scratch),
        DType::BFloat16 => round_through::<T, bf16>(scratch),
        _ => {}
    }
    row.copy_from_slice(scratch);
    T::from_f64(sum)
}

fn round_through<T: Real, H: crate::native::tensor::Element>(values: &mut [T]) {
    let mut rounded = [H::default(); 256];
    for chunk in values.chunks_mut(256) {
        narrow(chunk, &mut rounded[..chunk.len()]);
        widen(&rounded[..chunk.len()], chunk);
    }
}
