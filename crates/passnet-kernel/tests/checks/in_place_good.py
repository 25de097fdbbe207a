# wrapper: run
# input: x float32 [100] normal
import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x_ptr + i, tl.load(x_ptr + i, mask=i < n) * 2, mask=i < n)


def run(x):
    y = x.clone()
    kernel[(triton.cdiv(x.numel(), 64),)](y, x.numel(), BLOCK=64)
    return y
