# wrapper: rotary_pairs
# input: x float32 [2, 3, 13, 64] normal
# input: sin float32 [13, 64] normal
# input: cos float32 [13, 64] normal
"""Rotary embedding by neighbouring pairs: each pair is read once, turned, and written once."""

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
def rotary_pairs_kernel(x_ptr, sin_ptr, cos_ptr, out_ptr, pairs, BLOCK: tl.constexpr):
    dtype = out_ptr.dtype.element_ty
    # The tables cover one head; every head of every batch uses the same ones.
    table = tl.program_id(0) * 2 * BLOCK + tl.arange(0, 2 * BLOCK)
    inside = table < 2 * pairs
    place = tl.program_id(1) * 2 * pairs + table
    x = tl.load(x_ptr + place, mask=inside, other=0.0).to(tl.float32)
    cos = tl.load(cos_ptr + table, mask=inside, other=0.0).to(tl.float32)
    sin = tl.load(sin_ptr + table, mask=inside, other=0.0).to(tl.float32)
    even, odd = tl.split(tl.reshape(x, (BLOCK, 2)))
    rotated = tl.interleave(-odd, even)
    # Eager rounds both products before it adds them; so does this.
    turned = (x * cos).to(dtype).to(tl.float32) + (rotated * sin).to(dtype).to(tl.float32)
    tl.store(out_ptr + place, turned.to(dtype), mask=inside)


@torch.fx.wrap
def rotary_pairs(x, sin, cos):
    x = x.contiguous()
    batch, heads, length, width = x.shape
    sin = sin.expand(length, width).contiguous()
    cos = cos.expand(length, width).contiguous()
    out = torch.empty_like(x)
    pairs = length * width // 2
    # No fused multiply-add: eager rounds in between.
    rotary_pairs_kernel[(triton.cdiv(pairs, 512), batch * heads)](
        x, sin, cos, out, pairs, BLOCK=512, enable_fp_fusion=False
    )
    return out


def replacement_func():
    return rotary_pairs
