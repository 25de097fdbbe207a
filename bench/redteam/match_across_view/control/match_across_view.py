# wrapper: gelu_only
# input: x float32 [3, 50, 100] normal
"""Only the activation is replaced: what happens to it afterwards stays in the graph."""

import torch
import triton
import triton.language as tl


def pattern(x):
    return torch.nn.functional.gelu(x)


def replacement_args(x):
    return (x,)


@triton.jit
def gelu_kernel(x_ptr, out_ptr, count, BLOCK: tl.constexpr):
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = place < count
    x = tl.load(x_ptr + place, mask=inside, other=0.0).to(tl.float32)
    gelu = 0.5 * x * (1.0 + tl.erf(x * 0.7071067811865476))
    tl.store(out_ptr + place, gelu.to(out_ptr.dtype.element_ty), mask=inside)


@torch.fx.wrap
def gelu_only(x):
    x = x.contiguous()
    out = torch.empty_like(x)
    count = x.numel()
    gelu_kernel[(triton.cdiv(count, 1024),)](x, out, count, BLOCK=1024)
    return out


def replacement_func():
    return gelu_only
