//! Sums of products: matrix multiplication, convolution, attention.

use super::{Args, OpFunction};
use crate::engine::Value;
use crate::native::error::{Result, bail, ensure};
use crate::native::ops::attention::{
    Attention, MultiHead, SelfAttention, attention_with_dropout, multi_head_attention,
    native_multi_head_attention, scaled_dot_product_attention,
};
use crate::native::ops::conv::{self, Convolution, Padding};
use crate::native::ops::pointwise;
use crate::native::ops::{composite, einsum as summation, matmul, reduce};
use crate::native::tensor::Tensor;
use passnet_graph::ops::Op;

pub(super) fn function_of(op: Op) -> Option<OpFunction> {
    Some(match op {
        Op::Linear | Op::Bilinear => linear,
        Op::Matmul | Op::Mm | Op::Bmm | Op::Mv | Op::Dot | Op::Outer => product,
        Op::Addmm | Op::Addbmm | Op::Baddbmm => sum_and_product,
        Op::Einsum => einsum,
        Op::Tensordot => tensordot,
        Op::Cdist | Op::CosineSimilarity => distance,
        Op::Conv1d | Op::Conv2d | Op::Conv3d => convolution,
        Op::ConvTranspose1d | Op::ConvTranspose2d | Op::ConvTranspose3d => transposed,
        Op::ScaledDotProductAttention => attention,
        Op::MultiHeadAttentionForward => multi_head,
        Op::NativeMultiHeadAttention => native_multi_head,
        _ => return None,
    })
}

fn linear(args: &Args<'_>) -> Result<Value> {
    let bias = args.optional_tensor("bias")?;
    Ok(match args.op {
        Op::Linear => matmul::linear(args.tensor("input")?, args.tensor("weight")?, bias)?,
        _ => {
            let (a, b) = (args.tensor("input1")?, args.tensor("input2")?);
            composite::bilinear(a, b, args.tensor("weight")?, bias)?
        }
    }
    .into())
}

fn product(args: &Args<'_>) -> Result<Value> {
    let a = args.input()?;
    Ok(match args.op {
        Op::Matmul => matmul::matmul(a, args.tensor("other")?)?,
        Op::Mm => matmul::mm(a, args.tensor("mat2")?)?,
        Op::Bmm => matmul::bmm(a, args.tensor("mat2")?)?,
        Op::Mv => {
            let vector = args.tensor("vec")?;
            ensure!(
                a.ndim() == 2 && vector.ndim() == 1,
                Shape,
                "vector + matrix @ vector expected, got {}, {}",
                a.ndim(),
                vector.ndim()
            );
            matmul::matmul(a, vector)?
        }
        Op::Dot => {
            let b = args.tensor("tensor")?;
            ensure!(
                a.ndim() == 1 && b.ndim() == 1,
                Shape,
                "1D tensors expected, but got {}D and {}D tensors",
                a.ndim(),
                b.ndim()
            );
            matmul::matmul(a, b)?
        }
        _ => matmul::outer(a, args.tensor("vec2")?)?,
    }
    .into())
}

fn sum_and_product(args: &Args<'_>) -> Result<Value> {
    let (input, beta, alpha) = (args.input()?, args.number("beta")?, args.number("alpha")?);
    Ok(match args.op {
        Op::Addmm => matmul::addmm(input, args.tensor("mat1")?, args.tensor("mat2")?, beta, alpha)?,
        op => {
            let (a, b) = (args.tensor("batch1")?, args.tensor("batch2")?);
            if op == Op::Baddbmm {
                matmul::baddbmm(input, a, b, beta, alpha)?
            } else {
                let sum = reduce::sum(&matmul::bmm(a, b)?, Some(&[0]), false, None)?;
                let scaled = pointwise::mul(&input.into(), &beta.into())?;
                pointwise::add(&scaled.into(), &sum.into(), alpha)?
            }
        }
    }
    .into())
}

fn einsum(args: &Args<'_>) -> Result<Value> {
    let Some(equation) = args.text("equation") else {
        bail!(DType, "einsum(): the first argument is an equation");
    };
    Ok(summation::einsum(equation, &args.tensors("operands")?)?.into())
}

fn tensordot(args: &Args<'_>) -> Result<Value> {
    let (a, b) = (args.tensor("a")?, args.tensor("b")?);
    let pairs = |value: &Value| -> Result<Vec<i64>> {
        match value {
            Value::Sequence(items) => {
                items.iter().map(|item| super::args::as_int("dims", item)).collect()
            }
            value => Ok(vec![super::args::as_int("dims", value)?]),
        }
    };
    let (of_a, of_b) = match args.value("dims") {
        Value::Sequence(items) => match &**items {
            [first, second] => (pairs(first)?, pairs(second)?),
            _ => bail!(Value, "tensordot: dims must be an int or two lists of ints"),
        },
        _ => {
            let count = args.size("dims")?;
            ensure!(
                count <= a.ndim() && count <= b.ndim(),
                Shape,
                "tensordot: {count} dims to sum over, tensors have {} and {}",
                a.ndim(),
                b.ndim()
            );
            let first = (a.ndim() - count) as i64;
            ((first..a.ndim() as i64).collect(), (0..count as i64).collect())
        }
    };
    Ok(composite::tensordot(a, b, &of_a, &of_b)?.into())
}

fn distance(args: &Args<'_>) -> Result<Value> {
    let (a, b) = (args.tensor("x1")?, args.tensor("x2")?);
    Ok(match args.op {
        Op::Cdist => composite::cdist(a, b, args.float("p")?)?,
        _ => composite::cosine_similarity(a, b, args.int("dim")?, args.float("eps")?)?,
    }
    .into())
}

fn spatial_dims(op: Op) -> usize {
    match op {
        Op::Conv1d | Op::ConvTranspose1d => 1,
        Op::Conv2d | Op::ConvTranspose2d => 2,
        _ => 3,
    }
}

fn check_rank<'a>(args: &'a Args<'_>) -> Result<(&'a Tensor, &'a Tensor)> {
    let (input, weight) = (args.tensor("input")?, args.tensor("weight")?);
    let spatial = spatial_dims(args.op);
    ensure!(
        weight.ndim() == spatial + 2,
        Shape,
        "expected a weight of {} dimensions, got {:?}",
        spatial + 2,
        weight.shape()
    );
    Ok((input, weight))
}

fn convolution(args: &Args<'_>) -> Result<Value> {
    let (input, weight) = check_rank(args)?;
    let spatial = spatial_dims(args.op);
    let padding = match args.text("padding") {
        Some("same") => Padding::Same,
        Some("valid") => Padding::Valid,
        Some(other) => bail!(Value, "Invalid padding string: '{other}'"),
        None => Padding::Explicit(args.spatial("padding", spatial)?),
    };
    let options = Convolution {
        stride: args.spatial("stride", spatial)?,
        padding,
        dilation: args.spatial("dilation", spatial)?,
        groups: args.size("groups")?,
    };
    Ok(conv::convolution(input, weight, args.optional_tensor("bias")?, &options)?.into())
}

fn transposed(args: &Args<'_>) -> Result<Value> {
    let (input, weight) = check_rank(args)?;
    let spatial = spatial_dims(args.op);
    Ok(conv::convolution_transposed(
        input,
        weight,
        args.optional_tensor("bias")?,
        &args.spatial("stride", spatial)?,
        &args.spatial("padding", spatial)?,
        &args.spatial("output_padding", spatial)?,
        args.size("groups")?,
        &args.spatial("dilation", spatial)?,
    )?
    .into())
}

/// The share of attention weights that is dropped: none outside training.
fn dropped(args: &Args<'_>) -> Result<f64> {
    let trains = !args.has("training") || args.flag("training")?;
    let p = if trains { args.float("dropout_p")? } else { 0.0 };
    ensure!(
        (0.0..=1.0).contains(&p),
        Value,
        "dropout probability has to be between 0 and 1, but got {p}"
    );
    Ok(p)
}

fn attention(args: &Args<'_>) -> Result<Value> {
    let options = Attention {
        mask: args.optional_tensor("attn_mask")?.cloned(),
        causal: args.flag("is_causal")?,
        scale: args.optional_float("scale")?,
        grouped: args.flag("enable_gqa")?,
    };
    let (query, key, value) = (args.tensor("query")?, args.tensor("key")?, args.tensor("value")?);
    let p = dropped(args)?;
    if p > 0.0 {
        let mut generator = args.context.generator();
        return Ok(attention_with_dropout(query, key, value, &options, p, &mut generator)?.into());
    }
    Ok(scaled_dot_product_attention(query, key, value, &options)?.into())
}

fn multi_head(args: &Args<'_>) -> Result<Value> {
    let owned = |name: &str| -> Result<Option<Tensor>> { Ok(args.optional_tensor(name)?.cloned()) };
    let in_weights = if args.flag("use_separate_proj_weight")? {
        ["q_proj_weight", "k_proj_weight", "v_proj_weight"]
            .into_iter()
            .map(|name| args.tensor(name).cloned())
            .collect::<Result<Vec<_>>>()?
    } else {
        vec![args.tensor("in_proj_weight")?.clone()]
    };
    let need_weights = args.flag("need_weights")?;
    let layer = MultiHead {
        heads: args.size("num_heads")?,
        in_weights,
        in_bias: owned("in_proj_bias")?,
        bias_k: owned("bias_k")?,
        bias_v: owned("bias_v")?,
        add_zero_attn: args.flag("add_zero_attn")?,
        out_weight: args.tensor("out_proj_weight")?.clone(),
        out_bias: owned("out_proj_bias")?,
        key_padding_mask: owned("key_padding_mask")?,
        need_weights,
        attn_mask: owned("attn_mask")?,
        average_weights: args.flag("average_attn_weights")?,
        causal: args.flag("is_causal")?,
        static_k: owned("static_k")?,
        static_v: owned("static_v")?,
        dropout: dropped(args)?,
    };
    let (query, key, value) = (args.tensor("query")?, args.tensor("key")?, args.tensor("value")?);
    let mut generator = args.context.generator();
    let (result, weights) = multi_head_attention(query, key, value, &layer, &mut generator)?;
    let weights = weights.map_or(Value::None, Value::Tensor);
    Ok(Value::sequence([result.into(), weights]))
}

fn native_multi_head(args: &Args<'_>) -> Result<Value> {
    let query = args.tensor("query")?;
    let (key, value) = (args.tensor("key")?, args.tensor("value")?);
    ensure!(
        key.shape() == query.shape() && value.shape() == query.shape(),
        Shape,
        "expected `query`/`key`/`value` shapes to match"
    );
    let layer = SelfAttention {
        features: args.size("embed_dim")?,
        heads: args.size("num_head")?,
        qkv_weight: args.tensor("qkv_weight")?,
        qkv_bias: args.tensor("qkv_bias")?,
        out_weight: args.tensor("proj_weight")?,
        out_bias: args.tensor("proj_bias")?,
        mask: args.optional_tensor("mask")?,
    };
    let (result, weights) = native_multi_head_attention([query, key, value], &layer)?;
    let weights = match (args.flag("need_weights")?, args.flag("average_attn_weights")?) {
        (false, _) => Value::None,
        (true, false) => weights.into(),
        (true, true) => {
            let sum = reduce::sum(&weights, Some(&[1]), false, None)?;
            pointwise::div(&sum.into(), &(layer.heads as i64).into())?.into()
        }
    };
    Ok(Value::sequence([result.into(), weights]))
}
