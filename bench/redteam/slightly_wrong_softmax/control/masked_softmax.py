# wrapper: masked_softmax
# input: scores float32 [2, 3, 17, 45] normal
# input: mask float32 [2, 1, 1, 45] normal
"""A product with the reciprocal, which rounds differently."""

import torch
import triton
import triton.language as tl


def pattern(scores, mask):
    masked = scores / 8.0 + mask
    probabilities = torch.nn.functional.softmax(masked, -1, 3, None)
    return torch.nn.functional.dropout(probabilities, 0.1, False, False)


def replacement_args(scores, mask):
    return (scores, mask)


@triton.jit
def masked_softmax_kernel(
    scores_ptr,
    mask_ptr,
    out_ptr,
    heads,
    queries,
    keys,
    mask_batch,
    mask_head,
    mask_query,
    mask_key,
    ROWS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    dtype = out_ptr.dtype.element_ty
    plane = tl.program_id(0)
    query = tl.program_id(1) * ROWS + tl.arange(0, ROWS)[:, None]
    key = tl.arange(0, BLOCK)[None, :]
    inside = (query < queries) & (key < keys)
    place = plane * queries * keys + query * keys + key
    scores = tl.load(scores_ptr + place, mask=inside, other=0.0).to(tl.float32)
    mask_plane = mask_ptr + plane // heads * mask_batch + plane % heads * mask_head
    mask = tl.load(mask_plane + query * mask_query + key * mask_key, mask=inside, other=0.0).to(tl.float32)
    scaled = (scores / 8.0).to(dtype).to(tl.float32)
    masked = (scaled + mask).to(dtype).to(tl.float32)
    masked = tl.where(key < keys, masked, float("-inf"))
    weights = tl.exp(masked - tl.max(masked, axis=1, keep_dims=True))
    total = tl.sum(weights, axis=1, keep_dims=True)
    tl.store(out_ptr + place, (weights * (1.0 / total)).to(dtype), mask=inside)


@torch.fx.wrap
def masked_softmax(scores, mask):
    scores = scores.contiguous()
    mask = mask.expand(scores.shape)
    out = torch.empty_like(scores)
    batch, heads, queries, keys = scores.shape
    block = triton.next_power_of_2(keys)
    # Short rows share a program.
    rows = max(1, min(2048 // block, triton.next_power_of_2(queries)))
    masked_softmax_kernel[(batch * heads, triton.cdiv(queries, rows))](
        scores, mask, out, heads, queries, keys, *mask.stride(), ROWS=rows, BLOCK=block
    )
    return out


def replacement_func():
    return masked_softmax
