# wrapper: run
# input: x float32 [100] normal
# input: b float32 [100] normal
import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, b_ptr, c_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    x = tl.load(x_ptr + at, mask=inside)
    if b_ptr is not None and b_ptr:
        x += tl.load(b_ptr + at, mask=inside)
    if c_ptr:
        x *= tl.load(c_ptr + at, mask=inside)
    tl.store(out_ptr + at, x, mask=inside)


def run(x, b):
    out = torch.empty_like(x)
    kernel[(2,)](x, b, None, out, x.numel(), BLOCK=64)
    return out
