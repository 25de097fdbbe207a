# wrapper: biased_softmax
# input: scores float16 [2, 3, 17, 45] normal
# input: bias float16 [1, 3, 17, 45] normal
"""More precise than eager: the normalising factor is formed once and multiplied in float32."""

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
def biased_softmax_kernel(scores_ptr, bias_ptr, out_ptr, bias_rows, keys, BLOCK: tl.constexpr):
    dtype = out_ptr.dtype.element_ty
    row = tl.program_id(0)
    key = tl.arange(0, BLOCK)
    inside = key < keys
    scores = tl.load(scores_ptr + row * keys + key, mask=inside, other=0.0).to(tl.float32)
    bias = tl.load(bias_ptr + row % bias_rows * keys + key, mask=inside, other=0.0).to(tl.float32)
    biased = (scores + bias).to(dtype).to(tl.float32)
    biased = tl.where(inside, biased, float("-inf"))
    weights = tl.exp(biased - tl.max(biased, axis=0))
    tl.store(out_ptr + row * keys + key, (weights * (1.0 / tl.sum(weights, axis=0))).to(dtype), mask=inside)


@torch.fx.wrap
def biased_softmax(scores, bias):
    scores = scores.contiguous()
    batch, heads, queries, keys = scores.shape
    bias = bias.expand(1, heads, queries, keys).contiguous()
    out = torch.empty_like(scores)
    biased_softmax_kernel[(batch * heads * queries,)](
        scores, bias, out, heads * queries, keys, BLOCK=triton.next_power_of_2(keys)
    )
    return out


def replacement_func():
    return biased_softmax
