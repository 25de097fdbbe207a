# wrapper: run
# input: x float32 [64] normal
import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at)
    x = tl.where(x > 1, torch.finfo(torch.float16).max, x)
    x = tl.where(x < -1, torch.finfo(torch.bfloat16).eps, x)
    x = tl.where(at == 3, torch.finfo(torch.float32).min, x)
    tl.store(out_ptr + at, x)


def run(x):
    out = torch.empty_like(x)
    kernel[(1,)](x, out, BLOCK=64)
    return out
