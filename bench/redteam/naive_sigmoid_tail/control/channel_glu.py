# wrapper: channel_glu
# input: x float32 [2, 10, 101] normal
"""One exponential, with the care that large values need."""

import torch
import triton
import triton.language as tl


def pattern(x):
    return torch.nn.functional.glu(x, 1)


def replacement_args(x):
    return (x,)


@triton.jit
def channel_glu_kernel(x_ptr, out_ptr, half, BLOCK: tl.constexpr):
    dtype = out_ptr.dtype.element_ty
    sample = tl.program_id(0)
    place = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = place < half
    value = tl.load(x_ptr + sample * 2 * half + place, mask=inside, other=0.0).to(tl.float32)
    gate = tl.load(x_ptr + sample * 2 * half + half + place, mask=inside, other=0.0).to(tl.float32)
    power = tl.exp(-tl.abs(gate))
    share = tl.where(gate < 0, power, 1.0) / (1.0 + power)
    tl.store(out_ptr + sample * half + place, (value * share).to(dtype), mask=inside)


@torch.fx.wrap
def channel_glu(x):
    x = x.contiguous()
    batch, channels, *rest = x.shape
    out = torch.empty((batch, channels // 2, *rest), dtype=x.dtype, device=x.device)
    half = out.numel() // batch
    channel_glu_kernel[(batch, triton.cdiv(half, 1024))](x, out, half, BLOCK=1024)
    return out


def replacement_func():
    return channel_glu
