# wrapper: run
# tolerance: 0
# input: x float32 [777] uniform -9 9
import torch
import triton
import triton.language as tl


@triton.jit
def abs_floor_ceil_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    x = tl.load(x_ptr + offs, mask=mask, other=1)
    tl.store(out_ptr + offs, tl.abs(x) + tl.floor(x) - tl.ceil(x), mask=mask)


def run(x):
    out = torch.empty_like(x)
    n = x.numel()
    abs_floor_ceil_kernel[(triton.cdiv(n, 256),)](x, out, n, BLOCK=256)
    return out
