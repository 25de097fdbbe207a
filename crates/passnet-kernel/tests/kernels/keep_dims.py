# wrapper: run
# input: x float32 [16, 32] normal
import torch
import triton
import triton.language as tl


@triton.jit
def center_kernel(x_ptr, out_ptr, A: tl.constexpr, B: tl.constexpr):
    at = tl.arange(0, A)[:, None] * B + tl.arange(0, B)[None, :]
    x = tl.load(x_ptr + at)
    rows = tl.sum(x, axis=1, keep_dims=True) / B
    cols = tl.sum(x, axis=0, keep_dims=True) / A
    tl.store(out_ptr + at, x - rows - cols)


def run(x):
    out = torch.empty_like(x)
    center_kernel[(1,)](x, out, x.shape[0], x.shape[1])
    return out
