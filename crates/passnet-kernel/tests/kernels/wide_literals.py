# wrapper: run
# input: x int64 [64] int 0 1000000
import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at).to(tl.uint64)
    x = (x * 0x9E3779B97F4A7C15) ^ (x >> 3)
    tl.store(out_ptr + at, x.to(tl.int64, bitcast=True))


def run(x):
    out = torch.empty_like(x)
    kernel[(1,)](x, out, BLOCK=64)
    return out
