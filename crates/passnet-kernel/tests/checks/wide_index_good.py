# wrapper: run
# input: x float32 [100] normal
import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, n, scale, BLOCK: tl.constexpr):
    pid = tl.program_id(0).to(tl.int64)
    i = pid * BLOCK + tl.arange(0, BLOCK)
    far = i * scale
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=(i < n) & (far >= 0)), mask=i < n)


def run(x):
    out = torch.empty_like(x)
    kernel[(2,)](x, out, x.numel(), 40000000, BLOCK=64)
    return out
