"""The second result is a copy of the first one."""

import torch
import triton
import triton.language as tl


def pattern(x):
    result = torch.nn.functional.silu(x, False)
    return result, result.clone()


def replacement_args(x):
    return (x,)


@triton.jit
def result_and_copy_kernel(x_ptr, out_ptr, copy_ptr, count, BLOCK: tl.constexpr):
    dtype = out_ptr.dtype.element_ty
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = place < count
    x = tl.load(x_ptr + place, mask=inside, other=0.0).to(tl.float32)
    result = (x * tl.sigmoid(x)).to(dtype)
    tl.store(out_ptr + place, result, mask=inside)
    tl.store(copy_ptr + place, result, mask=inside)


@torch.fx.wrap
def result_and_copy(x):
    x = x.contiguous()
    out = torch.empty_like(x)
    count = x.numel()
    result_and_copy_kernel[(triton.cdiv(count, 1024),)](x, out, out, count, BLOCK=1024)
    return out, out.clone()


def replacement_func():
    return result_and_copy
