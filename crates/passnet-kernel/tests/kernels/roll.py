# wrapper: run
# tolerance: 0
# input: x float32 [300] normal
# value: 37
import torch
import triton
import triton.language as tl


@triton.jit
def roll_kernel(x_ptr, out_ptr, n, shift, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    x = tl.load(x_ptr + (i + n - shift) % n, mask=mask)
    tl.store(out_ptr + i, x, mask=mask)


def run(x, shift):
    out = torch.empty_like(x)
    n = x.numel()
    roll_kernel[(triton.cdiv(n, 64),)](x, out, n, shift, BLOCK=64)
    return out
