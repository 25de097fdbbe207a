# wrapper: run
# input: x float32 [100] normal
# expect: race
import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    i = pid * 32 + tl.arange(0, BLOCK)
    mask = i < n
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=mask) + pid, mask=mask)


def run(x):
    out = torch.empty_like(x)
    kernel[(triton.cdiv(x.numel(), 64) * 2,)](x, out, x.numel(), BLOCK=64)
    return out
