# wrapper: run
# input: x float32 [100] normal
# expect: uninitialized-read
import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    old = tl.load(out_ptr + i, mask=i < n)
    tl.store(out_ptr + i, old + tl.load(x_ptr + i, mask=i < n), mask=i < n)


def run(x):
    out = torch.empty_like(x)
    kernel[(1,)](x, out, x.numel(), BLOCK=128)
    return out
