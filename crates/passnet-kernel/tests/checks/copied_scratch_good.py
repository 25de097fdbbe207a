# wrapper: run
# input: x float32 [64] normal
import torch
import triton
import triton.language as tl


@triton.jit
def fill(x_ptr, tmp_ptr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(tmp_ptr + i, tl.load(x_ptr + i) * 2.0)


@triton.jit
def use(x_ptr, tmp_ptr, out_ptr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.load(x_ptr + i) + tl.load(tmp_ptr + i))


def run(x):
    tmp = torch.empty_like(x)
    fill[(1,)](x, tmp, BLOCK=64)
    tmp = tmp.clone()
    out = torch.empty_like(x)
    use[(1,)](x, tmp, out, BLOCK=64)
    return out
