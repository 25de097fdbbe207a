# wrapper: fake_quantize
# input: x float32 [3, 17, 100] normal
# input: step float32 [100] uniform 0.02 0.1
"""Addresses are for loads and stores."""

import torch
import triton
import triton.language as tl
from triton.language.extra import libdevice


def pattern(x, step):
    return torch.clamp(torch.round(x / step), -128, 127) * step


def replacement_args(x, step):
    return (x, step)


@triton.jit
def fake_quantize_kernel(x_ptr, step_ptr, out_ptr, width, BLOCK: tl.constexpr):
    dtype = out_ptr.dtype.element_ty
    column = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = column < width
    place = tl.program_id(0) * width + column
    x = tl.load(x_ptr + place, mask=inside, other=0.0).to(tl.float32)
    step = tl.load(step_ptr + column, mask=inside, other=1.0).to(tl.float32)
    # A correctly rounded division: near a tie, one unit in the last place decides the grid point.
    scaled = tl.div_rn(x, step).to(dtype).to(tl.float32)
    level = libdevice.rint(scaled)
    # Comparisons, unlike minimum and maximum, let NaN through as eager does.
    level = tl.where(level < -128.0, -128.0, level).to(tl.float32)
    level = tl.where(level > 127.0, 127.0, level)
    tl.store(out_ptr + place, (level * step).to(dtype), mask=inside)


@torch.fx.wrap
def fake_quantize(x, step):
    x = x.contiguous()
    width = x.shape[-1]
    step = step.expand(width).contiguous()
    out = torch.empty_like(x)
    rows = x.numel() // width
    block = min(triton.next_power_of_2(width), 1024)
    fake_quantize_kernel[(rows, triton.cdiv(width, block))](x, step, out, width, BLOCK=block)
    return out


def replacement_func():
    return fake_quantize
