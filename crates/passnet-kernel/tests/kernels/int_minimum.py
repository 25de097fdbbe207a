# wrapper: run
# input: x int64 [777] int -40 40
import torch
import triton
import triton.language as tl


@triton.jit
def int_minimum_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    x = tl.load(x_ptr + offs, mask=mask, other=1)
    tl.store(out_ptr + offs, tl.minimum(tl.maximum(x, -5), 17), mask=mask)


def run(x):
    out = torch.empty_like(x)
    n = x.numel()
    int_minimum_kernel[(triton.cdiv(n, 256),)](x, out, n, BLOCK=256)
    return out
