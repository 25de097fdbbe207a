//! Sums of products: matrix multiplication, convolution, attention.

use super::{
    Alias::Fresh,
    Class::{Attention, Contraction},
    Op, OpSpec, entry,
};

const fn contraction(
    op: Op,
    signatures: &'static [&'static str],
    spellings: &'static [&'static str],
) -> OpSpec {
    entry(op, Contraction, Fresh, signatures, spellings)
}

const CONV: &[&str] =
    &["input:T, weight:T, bias:T=None, stride:Z=1, padding:A=0, dilation:Z=1, groups:I=1"];
const CONV_TRANSPOSE: &[&str] = &[
    "input:T, weight:T, bias:T=None, stride:Z=1, padding:Z=0, output_padding:Z=0, groups:I=1, dilation:Z=1",
];

pub(super) static SPECS: &[OpSpec] = &[
    contraction(
        Op::Linear,
        &["input:T, weight:T, bias:T=None"],
        &["torch.nn.functional.linear", "torch._C._nn.linear"],
    ),
    contraction(
        Op::Bilinear,
        &["input1:T, input2:T, weight:T, bias:T=None"],
        &["torch.nn.functional.bilinear", "torch.bilinear"],
    ),
    contraction(
        Op::Matmul,
        &["input:T, other:T"],
        &[
            "torch.matmul",
            ".matmul",
            "op:matmul",
            "op:imatmul",
            ".__matmul__",
            "torch.linalg.matmul",
        ],
    ),
    contraction(Op::Mm, &["input:T, mat2:T"], &["torch.mm", ".mm"]),
    contraction(Op::Bmm, &["input:T, mat2:T"], &["torch.bmm", ".bmm"]),
    contraction(Op::Mv, &["input:T, vec:T"], &["torch.mv", ".mv"]),
    contraction(Op::Dot, &["input:T, tensor:T"], &["torch.dot", ".dot"]),
    contraction(Op::Outer, &["input:T, vec2:T"], &["torch.outer", "torch.ger", ".outer", ".ger"]),
    contraction(
        Op::Addmm,
        &["input:T, mat1:T, mat2:T, *, beta:N=1, alpha:N=1"],
        &["torch.addmm", ".addmm", ".addmm_"],
    ),
    contraction(
        Op::Addbmm,
        &["input:T, batch1:T, batch2:T, *, beta:N=1, alpha:N=1"],
        &["torch.addbmm", ".addbmm"],
    ),
    contraction(
        Op::Baddbmm,
        &["input:T, batch1:T, batch2:T, *, beta:N=1, alpha:N=1"],
        &["torch.baddbmm", ".baddbmm", ".baddbmm_"],
    ),
    contraction(
        Op::Einsum,
        &["equation:W, *operands:T"],
        &["torch.einsum", "torch.functional.einsum"],
    ),
    contraction(
        Op::Tensordot,
        &["a:T, b:T, dims:A=2"],
        &["torch.tensordot", "torch.functional.tensordot"],
    ),
    contraction(
        Op::Cdist,
        &["x1:T, x2:T, p:N=2.0, compute_mode:A=None"],
        &["torch.cdist", "torch.functional.cdist"],
    ),
    contraction(
        Op::CosineSimilarity,
        &["x1:T, x2:T, dim:I=1, eps:N=1e-08"],
        &["torch.cosine_similarity", "torch.nn.functional.cosine_similarity"],
    ),
    contraction(Op::Conv1d, CONV, &["torch.conv1d", "torch.nn.functional.conv1d"]),
    contraction(Op::Conv2d, CONV, &["torch.conv2d", "torch.nn.functional.conv2d"]),
    contraction(Op::Conv3d, CONV, &["torch.conv3d", "torch.nn.functional.conv3d"]),
    contraction(
        Op::ConvTranspose1d,
        CONV_TRANSPOSE,
        &["torch.conv_transpose1d", "torch.nn.functional.conv_transpose1d"],
    ),
    contraction(
        Op::ConvTranspose2d,
        CONV_TRANSPOSE,
        &["torch.conv_transpose2d", "torch.nn.functional.conv_transpose2d"],
    ),
    contraction(
        Op::ConvTranspose3d,
        CONV_TRANSPOSE,
        &["torch.conv_transpose3d", "torch.nn.functional.conv_transpose3d"],
    ),
    entry(
        Op::ScaledDotProductAttention,
        Attention,
        Fresh,
        &[
            "query:T, key:T, value:T, attn_mask:T=None, dropout_p:N=0.0, is_causal:B=False, *, scale:N=None, enable_gqa:B=False",
        ],
        &[
            "torch.nn.functional.scaled_dot_product_attention",
            "torch._C._nn.scaled_dot_product_attention",
        ],
    ),
    entry(
        Op::MultiHeadAttentionForward,
        Attention,
        Fresh,
        &[
            "query:T, key:T, value:T, embed_dim_to_check:I, num_heads:I, in_proj_weight:T=None, in_proj_bias:T=None, bias_k:T=None, bias_v:T=None, add_zero_attn:B=False, dropout_p:N=0.0, out_proj_weight:T=None, out_proj_bias:T=None, training:B=True, key_padding_mask:T=None, need_weights:B=True, attn_mask:T=None, use_separate_proj_weight:B=False, q_proj_weight:T=None, k_proj_weight:T=None, v_proj_weight:T=None, static_k:T=None, static_v:T=None, average_attn_weights:B=True, is_causal:B=False",
        ],
        &["torch.nn.functional.multi_head_attention_forward"],
    ),
    entry(
        Op::NativeMultiHeadAttention,
        Attention,
        Fresh,
        &[
            "query:T, key:T, value:T, embed_dim:I, num_head:I, qkv_weight:T, qkv_bias:T, proj_weight:T, proj_bias:T, mask:T=None, need_weights:B=True, average_attn_weights:B=True, mask_type:I=None",
        ],
        &["torch._native_multi_head_attention"],
    ),
];
