# wrapper: run
# tolerance: 0
# input: x float32 [10, 16] normal
# value: 6
import torch
import triton
import triton.language as tl


@triton.jit
def copy_kernel(x_ptr, out_ptr, rows, N: tl.constexpr):
    row = tl.program_id(0)
    if row >= rows:
        return
    i = tl.arange(0, N)
    tl.store(out_ptr + row * N + i, tl.load(x_ptr + row * N + i) + 1.0)


def run(x, rows):
    out = torch.zeros_like(x)
    copy_kernel[(x.shape[0],)](x, out, rows, N=x.shape[1])
    return out
