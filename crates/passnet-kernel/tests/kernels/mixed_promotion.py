# wrapper: run
# input: a float16 [100] normal
# input: b float32 [100] normal
# input: c int32 [100] int -9 9
import torch
import triton
import triton.language as tl


@triton.jit
def mixed_kernel(a_ptr, b_ptr, c_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    mask = i < n
    a = tl.load(a_ptr + i, mask=mask)
    b = tl.load(b_ptr + i, mask=mask)
    c = tl.load(c_ptr + i, mask=mask)
    tl.store(out_ptr + i, a * b + c, mask=mask)


def run(a, b, c):
    out = torch.empty_like(b)
    mixed_kernel[(1,)](a, b, c, out, a.numel(), BLOCK=128)
    return out
