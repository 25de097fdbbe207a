# wrapper: normalize_scale
# input: x float32 [19, 100] normal
# input: logit_scale float32 [1] uniform 1 2
"""Several kernels in one pass: partial sums in cells of their own, then one sweep."""

import torch
import triton
import triton.language as tl


def pattern(x, logit_scale):
    return x / x.norm(p=2, dim=-1, keepdim=True) * logit_scale.exp()


def replacement_args(x, logit_scale):
    return (x, logit_scale)


@triton.jit
def length_kernel(x_ptr, sum_ptr, width, parts, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    column = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * width + column, mask=column < width, other=0.0).to(tl.float32)
    tl.store(sum_ptr + row * parts + tl.program_id(1), tl.sum(x * x, axis=0))


@triton.jit
def scale_kernel(x_ptr, scale_ptr, sum_ptr, out_ptr, width, parts, PARTS: tl.constexpr, BLOCK: tl.constexpr):
    dtype = out_ptr.dtype.element_ty
    row = tl.program_id(0)
    column = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = column < width
    part = tl.arange(0, PARTS)
    squares = tl.load(sum_ptr + row * parts + part, mask=part < parts, other=0.0)
    x = tl.load(x_ptr + row * width + column, mask=inside, other=0.0).to(tl.float32)
    scale = tl.exp(tl.load(scale_ptr).to(tl.float32)).to(dtype).to(tl.float32)
    length = tl.sqrt(tl.sum(squares, axis=0)).to(dtype).to(tl.float32)
    unit = (x / length).to(dtype).to(tl.float32)
    tl.store(out_ptr + row * width + column, (unit * scale).to(dtype), mask=inside)


@torch.fx.wrap
def normalize_scale(x, logit_scale):
    x = x.contiguous()
    logit_scale = logit_scale.expand(1)
    out = torch.empty_like(x)
    width = x.shape[-1]
    rows = x.numel() // width
    parts = triton.cdiv(width, 128)
    squares = torch.empty((rows, parts), dtype=torch.float32, device=x.device)
    length_kernel[(rows, parts)](x, squares, width, parts, BLOCK=128)
    scale_kernel[(rows, parts)](
        x, logit_scale, squares, out, width, parts, PARTS=triton.next_power_of_2(parts), BLOCK=128
    )
    return out


def replacement_func():
    return normalize_scale
