# wrapper: rotary_half
# input: x float16 [2, 3, 13, 64] normal
# input: cos float16 [1, 1, 13, 64] normal
# input: sin float16 [1, 1, 13, 64] normal
"""A bound that nothing exceeds."""

import torch
import triton
import triton.language as tl


def pattern(x, cos, sin):
    direct = x * cos
    first = x[..., :32]
    second = x[..., 32:]
    rotated = torch.cat((-second, first), dim=-1)
    return direct + rotated * sin


def replacement_args(x, cos, sin):
    return (x, cos, sin)


@triton.jit
def rotary_half_kernel(x_ptr, cos_ptr, sin_ptr, out_ptr, length, STEPS: tl.constexpr, HALF: tl.constexpr):
    dtype = out_ptr.dtype.element_ty
    step = tl.program_id(0) * STEPS + tl.arange(0, STEPS)[:, None]
    lane = tl.arange(0, HALF)[None, :]
    inside = step < length
    # The tables belong to positions; every head of every batch uses the same ones.
    table = step * 2 * HALF + lane
    place = tl.program_id(1) * length * 2 * HALF + table
    first = tl.load(x_ptr + place, mask=inside, other=0.0).to(tl.float32)
    second = tl.load(x_ptr + place + HALF, mask=inside, other=0.0).to(tl.float32)
    cos_first = tl.load(cos_ptr + table, mask=inside, other=0.0).to(tl.float32)
    cos_second = tl.load(cos_ptr + table + HALF, mask=inside, other=0.0).to(tl.float32)
    sin_first = tl.load(sin_ptr + table, mask=inside, other=0.0).to(tl.float32)
    sin_second = tl.load(sin_ptr + table + HALF, mask=inside, other=0.0).to(tl.float32)
    first = tl.where(first > float("inf"), float("inf"), first)
    # Eager rounds both products before it adds them; so does this.
    left = (first * cos_first).to(dtype).to(tl.float32) + (-second * sin_first).to(dtype).to(tl.float32)
    right = (second * cos_second).to(dtype).to(tl.float32) + (first * sin_second).to(dtype).to(tl.float32)
    tl.store(out_ptr + place, left.to(dtype), mask=inside)
    tl.store(out_ptr + place + HALF, right.to(dtype), mask=inside)


@torch.fx.wrap
def rotary_half(x, cos, sin):
    x = x.contiguous()
    batch, heads, length, width = x.shape
    cos = cos.expand(1, 1, length, width).contiguous()
    sin = sin.expand(1, 1, length, width).contiguous()
    out = torch.empty_like(x)
    # No fused multiply-add: eager rounds in between.
    rotary_half_kernel[(triton.cdiv(length, 32), batch * heads)](
        x, cos, sin, out, length, STEPS=32, HALF=width // 2, enable_fp_fusion=False
    )
    return out


def replacement_func():
    return rotary_half
