# wrapper: run
# input: x int32 [777] int -60 60
import torch
import triton
import triton.language as tl


@triton.jit
def int_compare_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    x = tl.load(x_ptr + offs, mask=mask, other=1)
    tl.store(out_ptr + offs, (x > 3) & (x < 50) | (x == -7), mask=mask)


def run(x):
    out = torch.empty_like(x, dtype=torch.bool)
    n = x.numel()
    int_compare_kernel[(triton.cdiv(n, 256),)](x, out, n, BLOCK=256)
    return out
