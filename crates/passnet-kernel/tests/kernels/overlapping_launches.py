# wrapper: run
# input: x float32 [64] normal
import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, PDL: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    if PDL:
        tl.extra.cuda.gdc_wait()
    x = tl.load(x_ptr + at)
    if PDL:
        tl.extra.cuda.gdc_launch_dependents()
    tl.store(out_ptr + at, x + 1)


def run(x):
    out = torch.empty_like(x)
    kernel[(1,)](x, out, PDL=False, BLOCK=64)
    return out
