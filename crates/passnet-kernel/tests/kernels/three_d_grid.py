# wrapper: run
# input: x float32 [3, 4, 5, 8] normal
import torch
import triton
import triton.language as tl


@triton.jit
def grid_kernel(x_ptr, out_ptr, B, C, N: tl.constexpr):
    a, b, c = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    at = ((a * B + b) * C + c) * N + tl.arange(0, N)
    tl.store(out_ptr + at, tl.load(x_ptr + at) + a + b * 10 + c * 100)


def run(x):
    A, B, C, N = x.shape
    out = torch.empty_like(x)
    grid_kernel[(A, B, C)](x, out, B, C, N=N)
    return out
