# wrapper: quick_gelu_add
# input: x float16 [3, 17, 100] normal
# input: residual float16 [3, 17, 100] normal
"""One exponential, with that care."""

import torch
import triton
import triton.language as tl


def pattern(x, residual):
    return residual + x * torch.sigmoid(1.702 * x)


def replacement_args(x, residual):
    return (x, residual)


@triton.jit
def quick_gelu_add_kernel(x_ptr, residual_ptr, out_ptr, count, BLOCK: tl.constexpr):
    dtype = out_ptr.dtype.element_ty
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = place < count
    x = tl.load(x_ptr + place, mask=inside, other=0.0).to(tl.float32)
    residual = tl.load(residual_ptr + place, mask=inside, other=0.0).to(tl.float32)
    scaled = (1.702 * x).to(dtype).to(tl.float32)
    # The exponential of what is never positive does not overflow.
    power = tl.exp(-tl.abs(scaled))
    share = tl.where(scaled < 0, power, 1.0) / (1.0 + power)
    gate = share.to(dtype).to(tl.float32)
    gelu = (x * gate).to(dtype).to(tl.float32)
    tl.store(out_ptr + place, (residual + gelu).to(dtype), mask=inside)


@torch.fx.wrap
def quick_gelu_add(x, residual):
    x, residual = x.contiguous(), residual.expand(x.shape).contiguous()
    out = torch.empty_like(x)
    count = x.numel()
    # No fused multiply-add: eager rounds in between.
    quick_gelu_add_kernel[(triton.cdiv(count, 1024),)](
        x, residual, out, count, BLOCK=1024, enable_fp_fusion=False
    )
    return out


def replacement_func():
    return quick_gelu_add
