# wrapper: run
# input: x float32 [64] normal
# expect: uninitialized-read
import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, tmp_ptr, out_ptr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.load(x_ptr + i) + tl.load(tmp_ptr + i))


def run(x):
    tmp = torch.empty_like(x).clone()
    out = torch.empty_like(x)
    kernel[(1,)](x, tmp, out, BLOCK=64)
    return out
