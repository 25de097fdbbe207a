# wrapper: run
# input: x float32 [16, 32] normal
import torch
import triton
import triton.language as tl


@triton.jit
def reduce_kernel(x_ptr, out_ptr, A: tl.constexpr, B: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, A)[:, None] * B + tl.arange(0, B)[None, :])
    tl.store(out_ptr, tl.sum(x))
    tl.store(out_ptr + 1, tl.max(x))


def run(x):
    out = torch.empty((2,), dtype=x.dtype, device=x.device)
    reduce_kernel[(1,)](x, out, x.shape[0], x.shape[1])
    return out
