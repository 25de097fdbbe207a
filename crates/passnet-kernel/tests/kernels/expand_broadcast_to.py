# wrapper: run
# input: x float32 [16] normal
import torch
import triton
import triton.language as tl


@triton.jit
def outer_kernel(x_ptr, out_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    x = tl.load(x_ptr + i)
    rows = tl.broadcast_to(tl.expand_dims(x, 1), (N, N))
    cols = tl.broadcast_to(x[None, :], (N, N))
    tl.store(out_ptr + i[:, None] * N + i[None, :], rows * cols)


def run(x):
    n = x.numel()
    out = torch.empty((n, n), dtype=x.dtype, device=x.device)
    outer_kernel[(1,)](x, out, N=n)
    return out
