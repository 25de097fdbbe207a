# wrapper: run
# tolerance: 0
# input: x float32 [10, 6, 8] normal
import torch
import triton
import triton.language as tl


@triton.jit
def copy_kernel(x_ptr, out_ptr, s0, s1, R, N: tl.constexpr):
    a = tl.program_id(0)
    b = tl.program_id(1)
    i = tl.arange(0, N)
    tl.store(out_ptr + (a * R + b) * N + i, tl.load(x_ptr + a * s0 + b * s1 + i))


def run(x):
    part = x[2:8, 1::2]
    A, R, N = part.shape
    out = torch.empty((A, R, N), dtype=x.dtype, device=x.device)
    copy_kernel[(A, R)](part, out, part.stride(0), part.stride(1), R, N=N)
    return out
