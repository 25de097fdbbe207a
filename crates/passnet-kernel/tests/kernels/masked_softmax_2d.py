# wrapper: run
# input: x float32 [3, 10, 20] normal
# input: keep bool [3, 10, 20] int 0 2
import torch
import triton
import triton.language as tl


@triton.jit
def masked_softmax_kernel(x_ptr, keep_ptr, out_ptr, M, N, BM: tl.constexpr, BN: tl.constexpr):
    batch = tl.program_id(0)
    m = tl.arange(0, BM)[:, None]
    n = tl.arange(0, BN)[None, :]
    mask = (m < M) & (n < N)
    at = batch * M * N + m * N + n
    x = tl.load(x_ptr + at, mask=mask, other=0.0)
    keep = tl.load(keep_ptr + at, mask=mask, other=0)
    x = tl.where(keep & mask, x, -1e30)
    x = x - tl.max(x, axis=1)[:, None]
    e = tl.exp(x)
    y = e / tl.sum(e, axis=1)[:, None]
    tl.store(out_ptr + at, y, mask=mask)


def run(x, keep):
    B, M, N = x.shape
    out = torch.empty_like(x)
    masked_softmax_kernel[(B,)](x, keep, out, M, N, BM=16, BN=32)
    return out
