# wrapper: run
# tolerance: 0
# input: x float32 [37, 50] normal
# input: row float32 [50] normal
# input: col float32 [37] normal
import torch
import triton
import triton.language as tl


@triton.jit
def broadcast_kernel(x_ptr, row_ptr, col_ptr, out_ptr, M, N, BM: tl.constexpr, BN: tl.constexpr):
    m = tl.program_id(0) * BM + tl.arange(0, BM)[:, None]
    n = tl.program_id(1) * BN + tl.arange(0, BN)[None, :]
    mask = (m < M) & (n < N)
    x = tl.load(x_ptr + m * N + n, mask=mask)
    row = tl.load(row_ptr + n, mask=n < N)
    col = tl.load(col_ptr + m, mask=m < M)
    tl.store(out_ptr + m * N + n, (x + row) * col, mask=mask)


def run(x, row, col):
    out = torch.empty_like(x)
    M, N = x.shape
    broadcast_kernel[(triton.cdiv(M, 16), triton.cdiv(N, 32))](x, row, col, out, M, N, BM=16, BN=32)
    return out
