# wrapper: run
# input: x float32 [100] normal
import torch
import triton
import triton.language as tl


@triton.jit
def index_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    pid = tl.program_id(0).to(tl.int64)
    i = pid * BLOCK + tl.arange(0, BLOCK).to(tl.int64)
    mask = i < n
    tl.store(out_ptr + i, tl.load(x_ptr + n - 1 - i, mask=mask), mask=mask)


def run(x):
    out = torch.empty_like(x)
    index_kernel[(triton.cdiv(x.numel(), 32),)](x, out, x.numel(), BLOCK=32)
    return out
