# wrapper: run
# input: x float32 [3, 4, 25] normal
import torch
import triton
import triton.language as tl


@triton.jit
def stats_kernel(x_ptr, mean_ptr, rstd_ptr, N, C, L, BLOCK: tl.constexpr):
    c = tl.program_id(0)
    total = 0.0
    square = 0.0
    for n in range(N):
        i = tl.arange(0, BLOCK)
        x = tl.load(x_ptr + (n * C + c) * L + i, mask=i < L, other=0.0)
        total += tl.sum(x, 0)
        square += tl.sum(x * x, 0)
    mean = total / (N * L)
    tl.store(mean_ptr + c, mean)
    tl.store(rstd_ptr + c, tl.rsqrt(square / (N * L) - mean * mean + 1e-5))


@triton.jit
def apply_kernel(x_ptr, mean_ptr, rstd_ptr, out_ptr, C, L, BLOCK: tl.constexpr):
    nc = tl.program_id(0)
    c = nc % C
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + nc * L + i, mask=i < L)
    y = (x - tl.load(mean_ptr + c)) * tl.load(rstd_ptr + c)
    tl.store(out_ptr + nc * L + i, y, mask=i < L)


def run(x):
    N, C, L = x.shape
    mean = torch.empty((C,), dtype=torch.float32, device=x.device)
    rstd = torch.empty_like(mean)
    out = torch.empty_like(x)
    stats_kernel[(C,)](x, mean, rstd, N, C, L, BLOCK=32)
    apply_kernel[(N * C,)](x, mean, rstd, out, C, L, BLOCK=32)
    return out, mean, rstd
