# wrapper: run
# tolerance: 0
# input: x float32 [20, 27] normal
import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, M, N, BM: tl.constexpr, BN: tl.constexpr):
    m = (tl.program_id(0) * BM + tl.arange(0, BM))[:, None]
    n = tl.arange(0, BN)[None, :]
    inside = (m < M) & (n < N)
    x = tl.load(x_ptr + m * N + n, mask=inside, other=9.0)
    first = tl.where(n < 11, x, -1.0)
    second = tl.where(m >= 3, first, x)
    third = tl.where(inside, second, first)
    largest = tl.max(third, axis=1)[:, None]
    tl.store(out_ptr + m * N + n, tl.where(n < N, third, x) - largest, mask=inside)


def run(x):
    M, N = x.shape
    out = torch.empty_like(x)
    kernel[(triton.cdiv(M, 8),)](x, out, M, N, BM=8, BN=32)
    return out
