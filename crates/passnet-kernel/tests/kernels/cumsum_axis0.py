# wrapper: run
# input: x int32 [16, 8] int -9 9
import torch
import triton
import triton.language as tl


@triton.jit
def scan_kernel(x_ptr, out_ptr, A: tl.constexpr, B: tl.constexpr):
    at = tl.arange(0, A)[:, None] * B + tl.arange(0, B)[None, :]
    tl.store(out_ptr + at, tl.cumsum(tl.load(x_ptr + at), axis=0))


def run(x):
    out = torch.empty_like(x)
    scan_kernel[(1,)](x, out, x.shape[0], x.shape[1])
    return out
