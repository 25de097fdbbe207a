# wrapper: run
# tolerance: 0
# input: x float32 [32, 8] normal
import torch
import triton
import triton.language as tl


@triton.jit
def scatter_kernel(x_ptr, out_ptr, rows, N: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, N)
    target = (row * 5) % rows
    tl.store(out_ptr + target * N + i, tl.load(x_ptr + row * N + i))


def run(x):
    out = torch.empty_like(x)
    scatter_kernel[(x.shape[0],)](x, out, x.shape[0], N=x.shape[1])
    return out
