# wrapper: masked_fill_softmax
# input: scores float32 [2, 3, 17, 45] normal
# input: padding bool [2, 1, 17, 45] int 0 2
"""DeBERTa's masked softmax: masked scores are low before the softmax and exactly zero after it."""

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
    BLOCK: tl.constexpr,
):
    dtype = out_ptr.dtype.element_ty
    row = tl.program_id(0)
    query = row % queries
    head = row // queries % heads
    batch = row // queries // heads
    key = tl.arange(0, BLOCK)
    inside = key < keys
    scores = tl.load(scores_ptr + row * keys + key, mask=inside, other=0.0)
    padding_row = padding_ptr + batch * padding_batch + head * padding_head + query * padding_query
    padded = tl.load(padding_row + key * padding_key, mask=inside, other=0)
    filled = tl.where(padded, -10000.0, scores).to(dtype).to(tl.float32)
    filled = tl.where(inside, filled, float("-inf"))
    weights = tl.exp(filled - tl.max(filled, axis=0))
    probabilities = tl.where(padded, 0.0, weights / tl.sum(weights, axis=0))
    tl.store(out_ptr + row * keys + key, probabilities.to(dtype), mask=inside)


@torch.fx.wrap
def masked_fill_softmax(scores, padding):
    scores = scores.contiguous()
    padding = padding.expand(scores.shape)
    out = torch.empty_like(scores)
    batch, heads, queries, keys = scores.shape
    masked_fill_softmax_kernel[(batch * heads * queries,)](
        scores, padding, out, heads, queries, keys, *padding.stride(), BLOCK=triton.next_power_of_2(keys)
    )
    return out


def replacement_func():
    return masked_fill_softmax
