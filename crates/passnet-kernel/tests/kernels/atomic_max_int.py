# wrapper: run
# input: x int32 [400] int -5000 5000
import torch
import triton
import triton.language as tl


@triton.jit
def max_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=-100000)
    tl.atomic_max(out_ptr, tl.max(x, axis=0))
    tl.atomic_min(out_ptr + 1, tl.min(tl.where(i < n, x, 100000), axis=0))


def run(x):
    out = torch.zeros((2,), dtype=torch.int32, device=x.device)
    max_kernel[(triton.cdiv(x.numel(), 64),)](x, out, x.numel(), BLOCK=64)
    return out
