# wrapper: normalize_scale
# input: x float32 [19, 100] normal
# input: logit_scale float32 [1] uniform 1 2
"""A store that no program ever makes."""

import torch
import triton
import triton.language as tl


def pattern(x, logit_scale):
    return x / x.norm(p=2, dim=-1, keepdim=True) * logit_scale.exp()


def replacement_args(x, logit_scale):
    return (x, logit_scale)


@triton.jit
def normalize_scale_kernel(x_ptr, scale_ptr, out_ptr, width, BLOCK: tl.constexpr):
    dtype = out_ptr.dtype.element_ty
    column = tl.arange(0, BLOCK)
    inside = column < width
    place = tl.program_id(0) * width + column
    x = tl.load(x_ptr + place, mask=inside, other=0.0).to(tl.float32)
    scale = tl.exp(tl.load(scale_ptr).to(tl.float32)).to(dtype).to(tl.float32)
    length = tl.sqrt(tl.sum(x * x, axis=0)).to(dtype).to(tl.float32)
    unit = (x / length).to(dtype).to(tl.float32)
    tl.store(out_ptr + place, (unit * scale).to(dtype), mask=inside)
    tl.store(out_ptr + tl.num_programs(0) * width, 0.0, mask=tl.program_id(0) < 0)


@torch.fx.wrap
def normalize_scale(x, logit_scale):
    x = x.contiguous()
    logit_scale = logit_scale.expand(1)
    out = torch.empty_like(x)
    width = x.shape[-1]
    rows = x.numel() // width
    normalize_scale_kernel[(rows,)](x, logit_scale, out, width, BLOCK=triton.next_power_of_2(width))
    return out


def replacement_func():
    return normalize_scale
