# wrapper: masked_softmax
# input: scores float32 [2, 3, 17, 45] normal
# input: mask float32 [2, 1, 1, 45] normal
# value: 4.0
"""Any divisor matches, and the kernel divides by it."""

import torch
import triton
import triton.language as tl


def pattern(scores, divisor, mask):
    masked = scores / divisor + mask
    probabilities = torch.nn.functional.softmax(masked, -1, 3, None)
    return torch.nn.functional.dropout(probabilities, 0.1, False, False)


def replacement_args(scores, divisor, mask):
    return (scores, mask, divisor)


@triton.jit
def masked_softmax_kernel(
    scores_ptr,
    mask_ptr,
    out_ptr,
    heads,
    queries,
    keys,
    divisor,
    mask_batch,
    mask_head,
    mask_query,
    mask_key,
    BLOCK: tl.constexpr,
):
    dtype = out_ptr.dtype.element_ty
    row = tl.program_id(0)
    query = row % queries
    head = row // queries % heads
    batch = row // queries // heads
    key = tl.arange(0, BLOCK)
    inside = key < keys
    scores = tl.load(scores_ptr + row * keys + key, mask=inside, other=0.0).to(tl.float32)
    mask_row = mask_ptr + batch * mask_batch + head * mask_head + query * mask_query
    mask = tl.load(mask_row + key * mask_key, mask=inside, other=0.0).to(tl.float32)
    scaled = (scores / divisor).to(dtype).to(tl.float32)
    masked = (scaled + mask).to(dtype).to(tl.float32)
    masked = tl.where(inside, masked, float("-inf"))
    weights = tl.exp(masked - tl.max(masked, axis=0))
    tl.store(out_ptr + row * keys + key, (weights / tl.sum(weights, axis=0)).to(dtype), mask=inside)


@torch.fx.wrap
def masked_softmax(scores, mask, divisor):
    scores = scores.contiguous()
    mask = mask.expand(scores.shape)
    out = torch.empty_like(scores)
    batch, heads, queries, keys = scores.shape
    masked_softmax_kernel[(batch * heads * queries,)](
        scores, mask, out, heads, queries, keys, divisor, *mask.stride(), BLOCK=triton.next_power_of_2(keys)
    )
    return out


def replacement_func():
    return masked_softmax
