# wrapper: biased_softmax
# input: scores float16 [2, 3, 17, 45] normal
# input: bias float16 [1, 3, 17, 45] normal
"""The maximum is left out only where every score of the block is small."""

import torch
import triton
import triton.language as tl


def pattern(scores, bias):
    biased = scores + bias
    probabilities = torch.nn.functional.softmax(biased.float(), -1, 3, None).type_as(biased)
    return torch.nn.functional.dropout(probabilities, 0.1, False, False)


def replacement_args(scores, bias):
    return (scores, bias)


@triton.jit
def biased_softmax_kernel(
    scores_ptr, bias_ptr, out_ptr, heads, queries, keys, ROWS: tl.constexpr, BLOCK: tl.constexpr
):
    dtype = out_ptr.dtype.element_ty
    plane = tl.program_id(0)
    query = tl.program_id(1) * ROWS + tl.arange(0, ROWS)[:, None]
    key = tl.arange(0, BLOCK)[None, :]
    inside = (query < queries) & (key < keys)
    row = query * keys + key
    scores = tl.load(scores_ptr + plane * queries * keys + row, mask=inside, other=0.0).to(tl.float32)
    bias = tl.load(bias_ptr + plane % heads * queries * keys + row, mask=inside, other=0.0).to(tl.float32)
    biased = (scores + bias).to(dtype).to(tl.float32)
    biased = tl.where(key < keys, biased, float("-inf"))
    # Every score of the block is looked at, so the short cut is right wherever it is taken.
    ordinary = tl.max(tl.max(tl.where(inside, tl.abs(biased), 0.0), axis=1), axis=0) < 40.0
    top = tl.zeros([ROWS, 1], dtype=tl.float32)
    if not ordinary:
        top = tl.max(biased, axis=1, keep_dims=True)
    weights = tl.exp(biased - top)
    total = tl.sum(weights, axis=1, keep_dims=True)
    tl.store(out_ptr + plane * queries * keys + row, (weights / total).to(dtype), mask=inside)


@torch.fx.wrap
def biased_softmax(scores, bias):
    scores = scores.contiguous()
    batch, heads, queries, keys = scores.shape
    bias = bias.expand(1, heads, queries, keys).contiguous()
    out = torch.empty_like(scores)
    block = triton.next_power_of_2(keys)
    # Short rows share a program.
    rows = max(1, min(2048 // block, triton.next_power_of_2(queries)))
    biased_softmax_kernel[(batch * heads, triton.cdiv(queries, rows))](
        scores, bias, out, heads, queries, keys, ROWS=rows, BLOCK=block
    )
    return out


def replacement_func():
    return biased_softmax
