# wrapper: run
# tolerance: 0
# input: x float32 [777] normal
import torch
import triton
import triton.language as tl


@triton.jit
def nan_maximum_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    x = tl.load(x_ptr + offs, mask=mask, other=1)
    y = tl.where(x > 0, x, float('nan'))
    tl.store(out_ptr + offs, tl.maximum(y, 0.5, propagate_nan=tl.PropagateNan.ALL), mask=mask)


def run(x):
    out = torch.empty_like(x)
    n = x.numel()
    nan_maximum_kernel[(triton.cdiv(n, 256),)](x, out, n, BLOCK=256)
    return out
