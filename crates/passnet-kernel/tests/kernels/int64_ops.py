# wrapper: run
# input: x int64 [777] int -1000000 1000000
import torch
import triton
import triton.language as tl


@triton.jit
def int64_ops_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    x = tl.load(x_ptr + offs, mask=mask, other=1)
    tl.store(out_ptr + offs, (x * 100003) ^ (x >> 3), mask=mask)


def run(x):
    out = torch.empty_like(x)
    n = x.numel()
    int64_ops_kernel[(triton.cdiv(n, 256),)](x, out, n, BLOCK=256)
    return out
