# wrapper: alibi_softmax
# input: scores float32 [2, 3, 17, 45] normal
# input: slopes float32 [3, 1, 1] normal
# input: positions float32 [1, 1, 45] normal
"""Attention with linear biases: slope times position is formed in registers, row by row, and goes into the softmax."""

import torch
import triton
import triton.language as tl


def pattern(scores, slopes, positions):
    bias = slopes * positions
    return torch.nn.functional.softmax(scores * 0.125 + bias, -1, 3, None)


def replacement_args(scores, slopes, positions):
    return (scores, slopes, positions)


@triton.jit
def alibi_softmax_kernel(scores_ptr, slope_ptr, position_ptr, out_ptr, heads, queries, keys, BLOCK: tl.constexpr):
    dtype = out_ptr.dtype.element_ty
    row = tl.program_id(0)
    key = tl.arange(0, BLOCK)
    inside = key < keys
    slope = tl.load(slope_ptr + row // queries % heads).to(tl.float32)
    position = tl.load(position_ptr + key, mask=inside, other=0.0).to(tl.float32)
    scores = tl.load(scores_ptr + row * keys + key, mask=inside, other=0.0).to(tl.float32)
    bias = (slope * position).to(dtype).to(tl.float32)
    scaled = (scores * 0.125).to(dtype).to(tl.float32)
    biased = (scaled + bias).to(dtype).to(tl.float32)
    biased = tl.where(inside, biased, float("-inf"))
    weights = tl.exp(biased - tl.max(biased, axis=0))
    tl.store(out_ptr + row * keys + key, (weights / tl.sum(weights, axis=0)).to(dtype), mask=inside)


@torch.fx.wrap
def alibi_softmax(scores, slopes, positions):
    scores = scores.contiguous()
    batch, heads, queries, keys = scores.shape
    slopes = slopes.expand(heads, 1, 1).contiguous()
    positions = positions.expand(1, 1, keys).contiguous()
    out = torch.empty_like(scores)
    # No fused multiply-add: eager rounds in between.
    alibi_softmax_kernel[(batch * heads * queries,)](
        scores,
        slopes,
        positions,
        out,
        heads,
        queries,
        keys,
        BLOCK=triton.next_power_of_2(keys),
        enable_fp_fusion=False,
    )
    return out


def replacement_func():
    return alibi_softmax
