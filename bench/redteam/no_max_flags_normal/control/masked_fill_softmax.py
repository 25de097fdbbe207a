# wrapper: masked_fill_softmax
# input: scores float32 [2, 3, 17, 45] normal
# input: padding bool [2, 1, 17, 45] int 0 2
"""The maximum is left out row by row, where it is small."""

import torch
import triton
import triton.language as tl


def pattern(scores, padding):
    probabilities = torch.softmax(scores.masked_fill(padding, -10000.0), -1)
    return probabilities.masked_fill(padding, 0)


def replacement_args(scores, padding):
    return (scores, padding)


@triton.jit
def masked_fill_softmax_kernel(
    scores_ptr,
    padding_ptr,
    out_ptr,
    heads,
    queries,
    keys,
    padding_batch,
    padding_head,
    padding_query,
    padding_key,
    ROWS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    dtype = out_ptr.dtype.element_ty
    plane = tl.program_id(0)
    query = tl.program_id(1) * ROWS + tl.arange(0, ROWS)[:, None]
    key = tl.arange(0, BLOCK)[None, :]
    inside = (query < queries) & (key < keys)
    place = plane * queries * keys + query * keys + key
    scores = tl.load(scores_ptr + place, mask=inside, other=0.0)
    padding_plane = padding_ptr + plane // heads * padding_batch + plane % heads * padding_head
    padded = tl.load(padding_plane + query * padding_query + key * padding_key, mask=inside, other=0)
    filled = tl.where(padded, -10000.0, scores).to(dtype).to(tl.float32)
    filled = tl.where(key < keys, filled, float("-inf"))
    # Rows that are masked as a whole keep their maximum; so do all rows beside a large score.
    top = tl.max(filled, axis=1, keep_dims=True)
    top = tl.where((top > -40.0) & (top < 40.0), 0.0, top)
    weights = tl.exp(filled - top)
    total = tl.sum(weights, axis=1, keep_dims=True)
    tl.store(out_ptr + place, tl.where(padded, 0.0, weights / total).to(dtype), mask=inside)


@torch.fx.wrap
def masked_fill_softmax(scores, padding):
    scores = scores.contiguous()
    padding = padding.expand(scores.shape)
    out = torch.empty_like(scores)
    batch, heads, queries, keys = scores.shape
    block = triton.next_power_of_2(keys)
    # Short rows share a program.
    rows = max(1, min(2048 // block, triton.next_power_of_2(queries)))
    masked_fill_softmax_kernel[(batch * heads, triton.cdiv(queries, rows))](
        scores, padding, out, heads, queries, keys, *padding.stride(), ROWS=rows, BLOCK=block
    )
    return out


def replacement_func():
    return masked_fill_softmax
