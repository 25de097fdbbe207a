# wrapper: activate
# input: x bfloat16 [3, 50, 100] normal
"""The activation and the idle dropout; the addition belongs to the next pass."""

import torch
import triton
import triton.language as tl


def pattern(x):
    return torch.nn.functional.dropout(torch.nn.functional.gelu(x), 0.1, False, False)


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
def activate(x):
    x = x.contiguous()
    out = torch.empty_like(x)
    count = x.numel()
    gelu_kernel[(triton.cdiv(count, 1024),)](x, out, count, BLOCK=1024)
    return out


def replacement_func():
    return activate
