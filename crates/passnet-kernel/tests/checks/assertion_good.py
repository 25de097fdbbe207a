# wrapper: run
# input: x float32 [64] uniform 0 1
import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    x = tl.load(x_ptr + i)
    tl.device_assert(x < 2.0, "too large")
    tl.store(out_ptr + i, x)


def run(x):
    out = torch.empty_like(x)
    kernel[(1,)](x, out, N=64)
    return out
