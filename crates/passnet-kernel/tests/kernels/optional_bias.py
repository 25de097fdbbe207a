# wrapper: run
# input: x float32 [64] normal
# value: None
import torch
import triton
import triton.language as tl


@triton.jit
def bias_kernel(x_ptr, bias_ptr, out_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    x = tl.load(x_ptr + i)
    if bias_ptr is not None:
        x += tl.load(bias_ptr + i)
    tl.store(out_ptr + i, x * 2.0)


def run(x, bias):
    out = torch.empty_like(x)
    bias_kernel[(1,)](x, bias, out, N=x.numel())
    return out
