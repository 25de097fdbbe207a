# wrapper: alibi_softmax
# input: scores float32 [2, 3, 17, 45] normal
# input: slopes float32 [3, 1, 1] normal
# input: positions float32 [1, 1, 45] normal
"""The maximum is left out only where every score of the block is small."""

import torch
import triton
import triton.language as tl


def pattern(scores, slopes, positions):
    bias = slopes * positions
    return torch.nn.functional.softmax(scores * 0.125 + bias, -1, 3, None)


def replacement_args(scores, slopes, positions):
    return (scores, slopes, positions)


@triton.jit
def alibi_softmax_kernel(
    scores_ptr, slope_ptr, position_ptr, out_ptr, heads, queries, keys, ROWS: tl.constexpr, BLOCK: tl.constexpr
):
    dtype = out_ptr.dtype.element_ty
    plane = tl.program_id(0)
    query = tl.program_id(1) * ROWS + tl.arange(0, ROWS)[:, None]
    key = tl.arange(0, BLOCK)[None, :]
    inside = (query < queries) & (key < keys)
    place = plane * queries * keys + query * keys + key
    slope = tl.load(slope_ptr + plane % heads).to(tl.float32)
    position = tl.load(position_ptr + key, mask=key < keys, other=0.0).to(tl.float32)
    scores = tl.load(scores_ptr + place, mask=inside, other=0.0).to(tl.float32)
    bias = (slope * position).to(dtype).to(tl.float32)
    scaled = (scores * 0.125).to(dtype).to(tl.float32)
    biased = (scaled + bias).to(dtype).to(tl.float32)
    biased = tl.where(key < keys, biased, float("-inf"))
    # Every score of the block is looked at, so the short cut is right wherever it is taken.
    ordinary = tl.max(tl.max(tl.where(inside, tl.abs(biased), 0.0), axis=1), axis=0) < 40.0
    top = tl.zeros([ROWS, 1], dtype=tl.float32)
    if not ordinary:
        top = tl.max(biased, axis=1, keep_dims=True)
    weights = tl.exp(biased - top)
    total = tl.sum(weights, axis=1, keep_dims=True)
    tl.store(out_ptr + place, (weights / total).to(dtype), mask=inside)


@torch.fx.wrap
def alibi_softmax(scores, slopes, positions):
    scores = scores.contiguous()
    batch, heads, queries, keys = scores.shape
    slopes = slopes.expand(heads, 1, 1).contiguous()
    positions = positions.expand(1, 1, keys).contiguous()
    out = torch.empty_like(scores)
    block = triton.next_power_of_2(keys)
    # Short rows share a program.
    rows = max(1, min(2048 // block, triton.next_power_of_2(queries)))
    # No fused multiply-add: eager rounds in between.
    alibi_softmax_kernel[(batch * heads, triton.cdiv(queries, rows))](
        scores, slopes, positions, out, heads, queries, keys, ROWS=rows, BLOCK=block, enable_fp_fusion=False
    )
    return out


def replacement_func():
    return alibi_softmax
