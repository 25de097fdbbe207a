"""SiLU of measurements; minus one stands for a missing one."""

import torch
import triton
import triton.language as tl


def pattern(x):
    is_missing = x == -1.0
    return torch.nn.functional.silu(x, inplace=False).masked_fill(is_missing, 0.0)


def replacement_args(x):
    return (x,)


@triton.jit
def missing_values_kernel(x_ptr, out_ptr, count, BLOCK: tl.constexpr):
    dtype = out_ptr.dtype.element_ty
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = place < count
    x = tl.load(x_ptr + place, mask=inside, other=0.0).to(tl.float32)
    silu = x * tl.sigmoid(x)
    silu = tl.where(x == -1.0, 0.0, silu)
    tl.store(out_ptr + place, silu.to(dtype), mask=inside)


@torch.fx.wrap
def missing_values(x):
    x = x.contiguous()
    out = torch.empty_like(x)
    missing_values_kernel[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), BLOCK=1024)
    return out


def replacement_func():
    return missing_values
