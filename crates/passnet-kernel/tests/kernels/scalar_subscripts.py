# wrapper: run
# input: x float32 [16, 32] normal
import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, N, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    scale = tl.load(x_ptr + row * N)
    x = tl.load(x_ptr + row * N + at[:])
    y = x[None, :] * scale[None, None] + scale[None]
    tl.store(out_ptr + row * N + at[None, :], y)


def run(x):
    out = torch.empty_like(x)
    kernel[(x.shape[0],)](x, out, x.shape[1], BLOCK=32)
    return out
