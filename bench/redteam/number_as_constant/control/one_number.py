"""The factor is read."""

import torch
import triton
import triton.language as tl


def pattern(x, factor, offset, flag):
    return torch.where(flag, x * factor + offset, x)


def replacement_args(x, factor, offset, flag):
    return (x, factor, offset, flag)


@triton.jit
def one_number_kernel(x_ptr, factor_ptr, offset_ptr, flag_ptr, out_ptr, count, BLOCK: tl.constexpr):
    dtype = out_ptr.dtype.element_ty
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = place < count
    x = tl.load(x_ptr + place, mask=inside, other=0.0).to(tl.float32)
    factor = tl.load(factor_ptr).to(tl.float32)
    offset = tl.load(offset_ptr).to(tl.float32)
    flag = tl.load(flag_ptr) != 0
    scaled = (x * factor).to(dtype).to(tl.float32)
    result = tl.where(flag, scaled + offset, x)
    tl.store(out_ptr + place, result.to(dtype), mask=inside)


@torch.fx.wrap
def one_number(x, factor, offset, flag):
    x = x.contiguous()
    out = torch.empty_like(x)
    count = x.numel()
    one_number_kernel[(triton.cdiv(count, 1024),)](
        x, factor, offset, flag, out, count, BLOCK=1024, enable_fp_fusion=False
    )
    return out


def replacement_func():
    return one_number
