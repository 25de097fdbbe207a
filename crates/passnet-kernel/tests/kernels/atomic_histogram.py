# wrapper: run
# input: x int32 [500] int 0 16
import torch
import triton
import triton.language as tl


@triton.jit
def histogram_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    x = tl.load(x_ptr + i, mask=mask, other=0)
    tl.atomic_add(out_ptr + x, tl.full((BLOCK,), 1, tl.int32), mask=mask)


def run(x):
    out = torch.zeros((16,), dtype=torch.int32, device=x.device)
    histogram_kernel[(triton.cdiv(x.numel(), 128),)](x, out, x.numel(), BLOCK=128)
    return out
