# wrapper: run
# input: x float32 [100] normal
# expect: out-of-bounds
import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    total = 0.0
    for start in range(0, n, BLOCK):
        i = start + tl.arange(0, BLOCK)
        total += tl.sum(tl.load(x_ptr + i), axis=0)
    tl.store(out_ptr, total)


def run(x):
    out = torch.empty((1,), dtype=x.dtype, device=x.device)
    kernel[(1,)](x, out, x.numel(), BLOCK=64)
    return out
