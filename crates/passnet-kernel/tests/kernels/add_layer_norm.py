# wrapper: run
# input: x float32 [11, 48] normal
# input: r float32 [11, 48] normal
# input: w float32 [48] normal
# input: b float32 [48] normal
import torch
import triton
import triton.language as tl


@triton.jit
def add_norm_kernel(x_ptr, r_ptr, w_ptr, b_ptr, sum_ptr, out_ptr, N, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    mask = cols < N
    at = row * N + cols
    x = tl.load(x_ptr + at, mask=mask, other=0.0) + tl.load(r_ptr + at, mask=mask, other=0.0)
    tl.store(sum_ptr + at, x, mask=mask)
    mean = tl.sum(x, axis=0) / N
    d = tl.where(mask, x - mean, 0.0)
    rstd = 1.0 / tl.sqrt(tl.sum(d * d, axis=0) / N + eps)
    w = tl.load(w_ptr + cols, mask=mask)
    b = tl.load(b_ptr + cols, mask=mask)
    tl.store(out_ptr + at, d * rstd * w + b, mask=mask)


def run(x, r, w, b):
    M, N = x.shape
    total = torch.empty_like(x)
    out = torch.empty_like(x)
    add_norm_kernel[(M,)](x, r, w, b, total, out, N, 1e-5, BLOCK=64)
    return total, out
