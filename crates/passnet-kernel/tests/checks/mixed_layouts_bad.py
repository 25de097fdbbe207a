# wrapper: run
# input: x float32 [9, 20] normal stride [1, 9]
# input: y float32 [9, 20] normal
# expect: stride-assumption
import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    x = tl.load(x_ptr + i, mask=mask)
    y = tl.load(y_ptr + i, mask=mask)
    tl.store(out_ptr + i, x * 2.0 + y, mask=mask)


def run(x, y):
    out = torch.empty_like(y)
    kernel[(triton.cdiv(x.numel(), 64),)](x, y, out, x.numel(), BLOCK=64)
    return out
