# wrapper: run
# input: x int32 [30] int 1 100
import torch
import triton
import triton.language as tl


@triton.jit
def collatz_kernel(x_ptr, out_ptr):
    i = tl.program_id(0)
    n = tl.load(x_ptr + i)
    steps = 0
    while n != 1:
        n = tl.where(n % 2 == 0, n // 2, 3 * n + 1)
        steps += 1
    tl.store(out_ptr + i, steps)


def run(x):
    out = torch.empty_like(x)
    collatz_kernel[(x.numel(),)](x, out)
    return out
