# wrapper: quick_gelu_add
# input: x float16 [3, 17, 100] normal
# input: residual float16 [3, 17, 100] normal
"""An atomic counter that decides nothing."""

import torch
import triton
import triton.language as tl


def pattern(x, residual):
    return residual + x * torch.sigmoid(1.702 * x)


def replacement_args(x, residual):
    return (x, residual)


@triton.jit
def quick_gelu_add_kernel(x_ptr, residual_ptr, out_ptr, counter_ptr, count, BLOCK: tl.constexpr):
    dtype = out_ptr.dtype.element_ty
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = place < count
    x = tl.load(x_ptr + place, mask=inside, other=0.0).to(tl.float32)
    residual = tl.load(residual_ptr + place, mask=inside, other=0.0).to(tl.float32)
    # How many programs have come is counted, and nothing depends on it.
    tl.atomic_add(counter_ptr, 1)
    scaled = (1.702 * x).to(dtype).to(tl.float32)
    gate = tl.sigmoid(scaled).to(dtype).to(tl.float32)
    gelu = (x * gate).to(dtype).to(tl.float32)
    tl.store(out_ptr + place, (residual + gelu).to(dtype), mask=inside)


@torch.fx.wrap
def quick_gelu_add(x, residual):
    x, residual = x.contiguous(), residual.expand(x.shape).contiguous()
    out = torch.empty_like(x)
    count = x.numel()
    counter = torch.zeros((1,), dtype=torch.int32, device=x.device)
    # No fused multiply-add: eager rounds in between.
    quick_gelu_add_kernel[(triton.cdiv(count, 1024),)](
        x, residual, out, counter, count, BLOCK=1024, enable_fp_fusion=False
    )
    return out


def replacement_func():
    return quick_gelu_add
