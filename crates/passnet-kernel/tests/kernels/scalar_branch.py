# wrapper: run
# input: x float32 [12, 16] normal
import torch
import triton
import triton.language as tl


@triton.jit
def branch_kernel(x_ptr, out_ptr, N: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, N)
    x = tl.load(x_ptr + row * N + i)
    if row % 3 == 0:
        y = x * 2.0
    elif row % 3 == 1:
        y = x + 10.0
    else:
        y = -x
    tl.store(out_ptr + row * N + i, y)


def run(x):
    out = torch.empty_like(x)
    branch_kernel[(x.shape[0],)](x, out, N=x.shape[1])
    return out
