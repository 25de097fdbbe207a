//! `torch.nn.functional.multi_head_attention_forward`.

use super::scaled_dot_product::drop_weights;
use super::{Attention, attention_with_dropout, scaled_dot_product_attention};
use crate::native::error::{Result, ensure};
use crate::native::ops::{matmul, movement, pointwise, reduce};
use crate::native::random::Generator;
use crate::native::tensor::{Arg, Scalar, Tensor};
use passnet_graph::DType;

/// Weights and options of a multi-head attention layer.
#[derive(Debug, Clone)]
#[expect(missing_docs, reason = "the other fields are torch's arguments of the same names")]
pub struct MultiHead {
    pub heads: usize,
    /// The three projections stacked, or one for each of query, key and value.
    pub in_weights: Vec<Tensor>,
    pub in_bias: Option<Tensor>,
    pub bias_k: Option<Tensor>,
    pub bias_v: Option<Tensor>,
    pub add_zero_attn: bool,
    pub out_weight: Tensor,
    pub out_bias: Option<Tensor>,
    pub key_padding_mask: Option<Tensor>,
    pub need_weights: bool,
    pub attn_mask: Option<Tensor>,
    pub average_weights: bool,
    pub causal: bool,
    /// Keys and values to use in place of the projected ones.
    pub static_k: Option<Tensor>,
    pub static_v: Option<Tensor>,
    /// The share of attention weights that is dropped.
    pub dropout: f64,
}

/// The result and, where asked for, the attention weights. Inputs are `[length, batch, features]` or unbatched.
pub fn multi_head_attention(
    query: &Tensor,
    key: &Tensor,
    value: &Tensor,
    layer: &MultiHead,
    generator: &mut Generator,
) -> Result<(Tensor, Option<Tensor>)> {
    if query.ndim() == 2 {
        let mut batched = layer.clone();
        batched.key_padding_mask =
            layer.key_padding_mask.as_ref().map(|m| m.unsqueeze(0)).transpose()?;
        let (out, weights) = multi_head_attention(
            &query.unsqueeze(1)?,
            &key.unsqueeze(1)?,
            &value.unsqueeze(1)?,
            &batched,
            generator,
        )?;
        return Ok((out.squeeze(Some(&[1]))?, weights.map(|w| w.squeeze(Some(&[0]))).transpose()?));
    }
    ensure!(
        query.ndim() == 3 && key.ndim() == 3 && value.ndim() == 3,
        Shape,
        "query should be unbatched 2D or batched 3D tensor but received {}-D query tensor",
        query.ndim()
    );
    let (target, batch, features) = (query.shape()[0], query.shape()[1], query.shape()[2]);
    ensure!(
        layer.heads > 0 && features.is_multiple_of(layer.heads),
        Value,
        "embed_dim {features} not divisible by num_heads {}",
        layer.heads
    );
    let projected = project(query, key, value, layer, features)?;
    let heads = Heads::new(layer, projected, batch, features / layer.heads)?;
    let (attended, weights) = match layer.need_weights {
        true => heads.attend_with_weights(layer, generator)?,
        false => (heads.attend(layer, generator)?, None),
    };
    let joined =
        attended.permute(&[2, 0, 1, 3])?.contiguous()?.reshape_to(&[target * batch, features])?;
    let out = matmul::linear(&joined, &layer.out_weight, layer.out_bias.as_ref())?;
    let width = out.shape()[1];
    let out = out.reshape_to(&[target, batch, width])?;
    let weights = match weights {
        Some(weights) if layer.average_weights => {
            Some(reduce::mean(&weights, Some(&[1]), false, None)?)
        }
        weights => weights,
    };
    Ok((out, weights))
}

/// Queries, keys and values as `[batch, heads, rows, size]`, and what hides keys.
struct Heads {
    queries: Tensor,
    keys: Tensor,
    values: Tensor,
    mask: Option<Tensor>,
}

impl Heads {
    /// Splits what the projections gave into heads of `size`, and appends the keys and values that the layer adds.
    fn new(layer: &MultiHead, projected: [Tensor; 3], batch: usize, size: usize) -> Result<Self> {
        let [q, mut k, mut v] = projected;
        let as_float = |m: &Option<Tensor>| m.as_ref().map(|m| to_float(m, q.dtype())).transpose();
        let (mut padding, mut mask) =
            (as_float(&layer.key_padding_mask)?, as_float(&layer.attn_mask)?);
        let widen = |m: Option<Tensor>| -> Result<Option<Tensor>> {
            m.map(|m| movement::pad(&m, &[0, 1], movement::PadMode::Constant(Scalar::Int(0))))
                .transpose()
        };
        if let (Some(bias_k), Some(bias_v)) = (&layer.bias_k, &layer.bias_v) {
            k = movement::cat(&[k, movement::repeat(bias_k, &[1, batch, 1])?], 0)?;
            v = movement::cat(&[v, movement::repeat(bias_v, &[1, batch, 1])?], 0)?;
            (padding, mask) = (widen(padding)?, widen(mask)?);
        }
        let split = |t: &Tensor| -> Result<Tensor> {
            let rows = t.shape()[0];
            t.contiguous()?.reshape_to(&[rows, batch * layer.heads, size])?.transpose(0, 1)
        };
        let given = |own: &Option<Tensor>, projected: &Tensor| match own {
            Some(own) => Ok(own.clone()),
            None => split(projected),
        };
        let (q, mut k, mut v) =
            (split(&q)?, given(&layer.static_k, &k)?, given(&layer.static_v, &v)?);
        if layer.add_zero_attn {
            let zeros = Tensor::zeros(&[batch * layer.heads, 1, size], k.dtype())?;
            k = movement::cat(&[k, zeros.clone()], 1)?;
            v = movement::cat(&[v, zeros], 1)?;
            (padding, mask) = (widen(padding)?, widen(mask)?);
        }
        let (target, source) = (q.shape()[1], k.shape()[1]);
        let by_head = |t: &Tensor, rows: usize| t.reshape_to(&[batch, layer.heads, rows, size]);
        Ok(Heads {
            queries: by_head(&q, target)?,
            keys: by_head(&k, source)?,
            values: by_head(&v, source)?,
            mask: merge(mask, padding, batch, layer.heads, target, source)?,
        })
    }

    fn attend(self, layer: &MultiHead, generator: &mut Generator) -> Result<Tensor> {
        let Heads { queries, keys, values, mask } = self;
        let causal = layer.causal && mask.is_none();
        let options = Attention { mask, causal, ..Attention::default() };
        match layer.dropout {
            p if p > 0.0 => {
                attention_with_dropout(&queries, &keys, &values, &options, p, generator)
            }
            _ => scaled_dot_product_attention(&queries, &keys, &values, &options),
        }
    }

    /// The weights are a result of their own, so they are stored.
    fn attend_with_weights(
        self,
        layer: &MultiHead,
        generator: &mut Generator,
    ) -> Result<(Tensor, Option<Tensor>)> {
        let size = self.queries.size(-1)?;
        let scale = Scalar::Float((1.0 / size as f64).sqrt());
        let scores = matmul::matmul(
            &pointwise::mul(&self.queries.into(), &Arg::Scalar(scale))?,
            &self.keys.transpose(-2, -1)?,
        )?;
        let scores = match self.mask {
            Some(mask) => pointwise::add(&scores.into(), &mask.into(), 1i64.into())?,
            None => scores,
        };
        let weights = reduce::softmax(&scores, -1, None)?;
        let weights = match layer.dropout {
            p if p > 0.0 => drop_weights(&weights, p, generator)?,
            _ => weights,
        };
        Ok((matmul::matmul(&weights, &self.values)?, Some(weights)))
    }
}

fn project(
    query: &Tensor,
    key: &Tensor,
    value: &Tensor,
    layer: &MultiHead,
    features: usize,
) -> Result<[Tensor; 3]> {
    let part = |t: &Tensor, i: usize| t.narrow(0, (i * features) as i64, features);
    let inputs = [query, key, value];
    let mut results = Vec::with_capacity(3);
    for (i, input) in inputs.into_iter().enumerate() {
        let weight = match layer.in_weights.as_slice() {
            [stacked] => part(stacked, i)?,
            [_, _, _] => layer.in_weights[i].clone(),
            other => crate::native::error::bail!(
                Value,
                "expected one or three input projections, got {}",
                other.len()
            ),
        };
        let bias = layer.in_bias.as_ref().map(|b| part(b, i)).transpose()?;
        results.push(matmul::linear(input, &weight, bias.as_ref())?);
    }
    let [q, k, v]: [Tensor; 3] = results
        .try_into()
        .map_err(|_| crate::native::error::err!(Value, "attention needs three inputs"))?;
    Ok([q, k, v])
}

/// True in a bool mask hides a key.
fn to_float(mask: &Tensor, dtype: DType) -> Result<Tensor> {
    if mask.dtype() != DType::Bool {
        return Ok(mask.clone());
    }
    let zeros = Tensor::zeros(mask.shape(), dtype)?;
    pointwise::masked_fill(&zeros, mask, &f64::NEG_INFINITY.into())
}

/// Both masks as one over `[batch, head, target, source]`.
fn merge(
    mask: Option<Tensor>,
    padding: Option<Tensor>,
    batch: usize,
    heads: usize,
    target: usize,
    source: usize,
) -> Result<Option<Tensor>> {
    let mask = match mask {
        Some(mask) if mask.ndim() == 3 => Some(if mask.shape()[0] == 1 {
            mask.unsqueeze(0)?
        } else {
            mask.reshape_to(&[batch, heads, target, source])?
        }),
        Some(mask) => Some(mask.unsqueeze(0)?.unsqueeze(0)?),
        None => None,
    };
    let padding = padding.map(|p| p.reshape_to(&[batch, 1, 1, source])).transpose()?;
    Ok(match (mask, padding) {
        (Some(mask), Some(padding)) => {
            Some(pointwise::add(&mask.into(), &padding.into(), 1i64.into())?)
        }
        (mask, padding) => mask.or(padding),
    })
}
