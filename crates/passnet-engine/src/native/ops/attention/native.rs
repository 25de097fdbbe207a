//! `torch._native_multi_head_attention`: attention over `[batch, length, features]` in one call.

use crate::native::error::{Result, ensure};
use crate::native::ops::{matmul, pointwise, reduce};
use crate::native::tensor::{Arg, Scalar, Tensor};
use passnet_graph::DType;

/// Weights and options.
#[derive(Debug, Clone)]
#[expect(missing_docs, reason = "fields are torch's arguments")]
pub struct SelfAttention<'a> {
    pub features: usize,
    pub heads: usize,
    pub qkv_weight: &'a Tensor,
    pub qkv_bias: &'a Tensor,
    pub out_weight: &'a Tensor,
    pub out_bias: &'a Tensor,
    /// True hides a key: `[length, length]`, `[batch, length]` or `[batch, heads, length, length]`.
    pub mask: Option<&'a Tensor>,
}

/// The result and the weights of every head.
pub fn native_multi_head_attention(
    inputs: [&Tensor; 3],
    layer: &SelfAttention<'_>,
) -> Result<(Tensor, Tensor)> {
    let input = inputs[0];
    ensure!(input.ndim() == 3, Shape, "expected 3-D `query`, got {}-D tensor", input.ndim());
    let [batch, length, features] = [input.shape()[0], input.shape()[1], input.shape()[2]];
    ensure!(
        features == layer.features && layer.heads > 0 && features.is_multiple_of(layer.heads),
        Shape,
        "passed-in embed_dim {} didn't match last dim of query {features}, or {} heads do not divide it",
        layer.features,
        layer.heads
    );
    ensure!(
        layer.qkv_weight.shape() == [3 * features, features]
            && layer.qkv_bias.shape() == [3 * features],
        Shape,
        "expected `qkv_weight` of [{}, {features}] and `qkv_bias` of [{}]",
        3 * features,
        3 * features
    );
    let size = features / layer.heads;
    // Bias and scale are applied in single precision and rounded once.
    let wide = if input.dtype() == DType::Float64 { DType::Float64 } else { DType::Float32 };
    let by_head = |part: usize| -> Result<Tensor> {
        let first = (part * features) as i64;
        let weight = layer.qkv_weight.narrow(0, first, features)?;
        let bias = layer.qkv_bias.narrow(0, first, features)?.to_dtype(wide)?;
        let projected = matmul::linear(inputs[part], &weight, None)?.to_dtype(wide)?;
        let biased = pointwise::add(&projected.into(), &bias.into(), Scalar::Int(1))?;
        biased.reshape_to(&[batch, length, layer.heads, size])?.transpose(1, 2)
    };
    let scale = Arg::Scalar(Scalar::Float((size as f64).sqrt()));
    let q = pointwise::div(&by_head(0)?.into(), &scale)?.to_dtype(input.dtype())?;
    let (k, v) = (by_head(1)?.to_dtype(input.dtype())?, by_head(2)?.to_dtype(input.dtype())?);
    let scores = matmul::matmul(&q, &k.transpose(-2, -1)?)?;
    let scores = match layer.mask {
        Some(mask) => {
            let mask = match mask.ndim() {
                2 if mask.shape() == [length, length] => mask.clone(),
                2 => mask.unsqueeze(1)?.unsqueeze(1)?,
                _ => mask.clone(),
            };
            pointwise::masked_fill(
                &scores,
                &mask.to_dtype(DType::Bool)?,
                &f64::NEG_INFINITY.into(),
            )?
        }
        None => scores,
    };
    let weights = reduce::softmax(&scores, -1, None)?;
    let joined =
        matmul::matmul(&weights, &v)?.transpose(1, 2)?.reshape_to(&[batch, length, features])?;
    Ok((matmul::linear(&joined, layer.out_weight, Some(layer.out_bias))?, weights))
}
