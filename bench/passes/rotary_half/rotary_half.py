# wrapper: rotary_half
# input: x float16 [2, 3, 13, 64] normal
# input: cos float16 [1, 1, 13, 64] normal
# input: sin float16 [1, 1, 13, 64] normal
"""Rotary embedding by halves. The rotated tensor is never built: each half is read again with its partner's sign."""

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
def rotary_half_kernel(
    x_ptr,
    cos_ptr,
    sin_ptr,
    out_ptr,
    heads,
    length,
    rows,
    cos_batch,
    cos_head,
    cos_step,
    cos_lane,
    sin_batch,
    sin_head,
    sin_step,
    sin_lane,
    ROWS: tl.constexpr,
    HALF: tl.constexpr,
):
    dtype = out_ptr.dtype.element_ty
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)[:, None]
    lane = tl.arange(0, 2 * HALF)[None, :]
    inside = row < rows
    step = row % length
    head = row // length % heads
    batch = row // length // heads
    partner = (lane + HALF) % (2 * HALF)
    x = tl.load(x_ptr + row * 2 * HALF + lane, mask=inside, other=0.0).to(tl.float32)
    rotated = tl.load(x_ptr + row * 2 * HALF + partner, mask=inside, other=0.0).to(tl.float32)
    rotated = tl.where(lane < HALF, -rotated, rotated)
    cos_place = batch * cos_batch + head * cos_head + step * cos_step + lane * cos_lane
    sin_place = batch * sin_batch + head * sin_head + step * sin_step + lane * sin_lane
    cos = tl.load(cos_ptr + cos_place, mask=inside, other=0.0).to(tl.float32)
    sin = tl.load(sin_ptr + sin_place, mask=inside, other=0.0).to(tl.float32)
    direct = (x * cos).to(dtype).to(tl.float32)
    turned = (rotated * sin).to(dtype).to(tl.float32)
    tl.store(out_ptr + row * 2 * HALF + lane, (direct + turned).to(dtype), mask=inside)


@torch.fx.wrap
def rotary_half(x, cos, sin):
    x = x.contiguous()
    cos, sin = cos.expand(x.shape), sin.expand(x.shape)
    out = torch.empty_like(x)
    batch, heads, length, width = x.shape
    rows = batch * heads * length
    rotary_half_kernel[(triton.cdiv(rows, 16),)](
        x, cos, sin, out, heads, length, rows, *cos.stride(), *sin.stride(), ROWS=16, HALF=width // 2
    )
    return out


def replacement_func():
    return rotary_half
