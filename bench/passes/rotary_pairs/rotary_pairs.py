# wrapper: rotary_pairs
# input: x float32 [2, 3, 13, 64] normal
# input: sin float32 [13, 64] normal
# input: cos float32 [13, 64] normal
"""Rotary embedding by neighbouring pairs: lane 2k takes the negated lane 2k+1 as its partner and gives itself back."""

import torch
import triton
import triton.language as tl


def pattern(x, sin, cos, batch, heads, length):
    even = x[..., ::2]
    odd = x[..., 1::2]
    rotated = torch.stack([-odd, even], -1).reshape(batch, heads, length, 64)
    return x * cos + rotated * sin


def replacement_args(x, sin, cos, batch, heads, length):
    return (x, sin, cos)


@triton.jit
def rotary_pairs_kernel(x_ptr, sin_ptr, cos_ptr, out_ptr, table, count, BLOCK: tl.constexpr):
    dtype = out_ptr.dtype.element_ty
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = place < count
    is_even = place % 2 == 0
    partner = tl.where(is_even, place + 1, place - 1)
    x = tl.load(x_ptr + place, mask=inside, other=0.0).to(tl.float32)
    rotated = tl.load(x_ptr + partner, mask=inside, other=0.0).to(tl.float32)
    rotated = tl.where(is_even, -rotated, rotated)
    # The tables cover one head; every head walks through them again.
    sin = tl.load(sin_ptr + place % table, mask=inside, other=0.0).to(tl.float32)
    cos = tl.load(cos_ptr + place % table, mask=inside, other=0.0).to(tl.float32)
    direct = (x * cos).to(dtype).to(tl.float32)
    turned = (rotated * sin).to(dtype).to(tl.float32)
    tl.store(out_ptr + place, (direct + turned).to(dtype), mask=inside)


@torch.fx.wrap
def rotary_pairs(x, sin, cos):
    x = x.contiguous()
    length, width = x.shape[-2:]
    sin = sin.expand(length, width).contiguous()
    cos = cos.expand(length, width).contiguous()
    out = torch.empty_like(x)
    count = x.numel()
    rotary_pairs_kernel[(triton.cdiv(count, 1024),)](x, sin, cos, out, length * width, count, BLOCK=1024)
    return out


def replacement_func():
    return rotary_pairs
