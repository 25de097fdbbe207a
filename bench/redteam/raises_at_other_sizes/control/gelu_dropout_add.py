# wrapper: gelu_dropout_add
# input: x bfloat16 [3, 50, 100] normal
# input: residual bfloat16 [3, 50, 100] normal
"""An error only where there is nothing to compute."""

import torch
import triton
import triton.language as tl


def pattern(x, residual):
    activated = torch.nn.functional.gelu(x)
    return torch.nn.functional.dropout(activated, 0.1, False, False) + residual


def replacement_args(x, residual):
    return (x, residual)


@triton.jit
def gelu_add_kernel(x_ptr, residual_ptr, out_ptr, count, BLOCK: tl.constexpr):
    dtype = out_ptr.dtype.element_ty
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = place < count
    x = tl.load(x_ptr + place, mask=inside, other=0.0).to(tl.float32)
    residual = tl.load(residual_ptr + place, mask=inside, other=0.0).to(tl.float32)
    gelu = 0.5 * x * (1.0 + tl.erf(x * 0.7071067811865476))
    # Eager stores the activation before it adds: round it the same way.
    tl.store(out_ptr + place, (gelu.to(dtype).to(tl.float32) + residual).to(dtype), mask=inside)


@torch.fx.wrap
def gelu_dropout_add(x, residual):
    x, residual = x.contiguous(), residual.expand(x.shape).contiguous()
    if x.shape[-1] < 1:
        raise ValueError("nothing to do")
    out = torch.empty_like(x)
    count = x.numel()
    gelu_add_kernel[(triton.cdiv(count, 1024),)](x, residual, out, count, BLOCK=1024)
    return out


def replacement_func():
    return gelu_dropout_add
