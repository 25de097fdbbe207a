# wrapper: run
# input: x float32 [4, 8, 16] normal
import torch
import triton
import triton.language as tl


@triton.jit
def reduce_kernel(x_ptr, out_ptr, A: tl.constexpr, B: tl.constexpr, C: tl.constexpr):
    a = tl.arange(0, A)[:, None, None]
    b = tl.arange(0, B)[None, :, None]
    c = tl.arange(0, C)[None, None, :]
    x = tl.load(x_ptr + (a * B + b) * C + c)
    tl.store(out_ptr + tl.arange(0, A)[:, None] * B + tl.arange(0, B)[None, :], tl.sum(x, axis=2) + tl.max(x, axis=2))


def run(x):
    A, B, C = x.shape
    out = torch.empty((A, B), dtype=x.dtype, device=x.device)
    reduce_kernel[(1,)](x, out, A, B, C)
    return out
