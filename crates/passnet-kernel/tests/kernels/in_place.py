# wrapper: run
# input: x float32 [200] normal
import torch
import triton
import triton.language as tl


@triton.jit
def scale_kernel(x_ptr, n, factor, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    tl.store(x_ptr + i, tl.load(x_ptr + i, mask=mask) * factor, mask=mask)


def run(x):
    y = x.clone()
    scale_kernel[(triton.cdiv(y.numel(), 64),)](y, y.numel(), 1.5, BLOCK=64)
    return y
