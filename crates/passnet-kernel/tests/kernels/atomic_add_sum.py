# wrapper: run
# input: x float32 [300] normal
# tolerance: 1e-4
# expect: atomic-order
import torch
import triton
import triton.language as tl


@triton.jit
def sum_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=0.0)
    tl.atomic_add(out_ptr, tl.sum(x, axis=0))


def run(x):
    out = torch.zeros((1,), dtype=x.dtype, device=x.device)
    sum_kernel[(triton.cdiv(x.numel(), 64),)](x, out, x.numel(), BLOCK=64)
    return out
