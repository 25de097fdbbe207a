# wrapper: run
# input: x float32 [64] normal
# expect: output-not-written
import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.load(x_ptr + i) * 2.0, mask=i < 60)


def run(x):
    out = torch.empty_like(x)
    kernel[(1,)](x, out, BLOCK=64)
    return out.clone()
