# wrapper: add_residual
# input: x float32 [3, 50, 100] normal
# input: residual float32 [3, 50, 100] normal
"""Adds the residual that the first pass left in the graph."""

import torch
import triton
import triton.language as tl


def pattern(x, residual):
    return x + residual


def replacement_args(x, residual):
    return (x, residual)


@triton.jit
def add_kernel(x_ptr, residual_ptr, out_ptr, count, BLOCK: tl.constexpr):
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = place < count
    x = tl.load(x_ptr + place, mask=inside, other=0.0)
    residual = tl.load(residual_ptr + place, mask=inside, other=0.0)
    tl.store(out_ptr + place, x + residual, mask=inside)


@torch.fx.wrap
def add_residual(x, residual):
    x, residual = x.contiguous(), residual.expand(x.shape).contiguous()
    out = torch.empty_like(x)
    count = x.numel()
    add_kernel[(triton.cdiv(count, 1024),)](x, residual, out, count, BLOCK=1024)
    return out


def replacement_func():
    return add_residual
