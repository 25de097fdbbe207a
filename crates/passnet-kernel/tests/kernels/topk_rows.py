# wrapper: run
# input: x float32 [8, 64] normal
import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, line_ptr, N: tl.constexpr, K: tl.constexpr):
    rows = tl.arange(0, 8)
    at = tl.arange(0, N)
    x = tl.load(x_ptr + rows[:, None] * N + at[None, :])
    best = tl.topk(x, K)
    tl.store(out_ptr + rows[:, None] * K + tl.arange(0, K)[None, :], best)
    tl.store(line_ptr + tl.arange(0, K), tl.topk(tl.load(x_ptr + at), K))


def run(x):
    out = torch.empty((8, 4), dtype=x.dtype, device=x.device)
    line = torch.empty((4,), dtype=x.dtype, device=x.device)
    kernel[(1,)](x, out, line, N=64, K=4)
    return out, line
