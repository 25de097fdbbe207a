# wrapper: run
# input: x float32 [2048, 3000] normal
# input: residual float32 [2048, 3000] normal
# input: w float32 [3000] normal
# input: b float32 [3000] normal
import torch
import triton
import triton.language as tl


@triton.jit
def add_layer_norm_kernel(x_ptr, r_ptr, w_ptr, b_ptr, sum_ptr, out_ptr, N, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    total = tl.zeros([BLOCK], dtype=tl.float32)
    squares = tl.zeros([BLOCK], dtype=tl.float32)
    for start in range(0, N, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        mask = cols < N
        s = tl.load(x_ptr + row * N + cols, mask=mask, other=0.0) + tl.load(r_ptr + row * N + cols, mask=mask, other=0.0)
        tl.store(sum_ptr + row * N + cols, s, mask=mask)
        total += s
        squares += s * s
    mean = tl.sum(total, axis=0) / N
    var = tl.sum(squares, axis=0) / N - mean * mean
    rstd = tl.rsqrt(var + eps)
    for start in range(0, N, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        mask = cols < N
        s = tl.load(sum_ptr + row * N + cols, mask=mask, other=0.0)
        w = tl.load(w_ptr + cols, mask=mask)
        b = tl.load(b_ptr + cols, mask=mask)
        tl.store(out_ptr + row * N + cols, (s - mean) * rstd * w + b, mask=mask)


def run(x, residual, w, b):
    total = torch.empty_like(x)
    out = torch.empty_like(x)
    M, N = x.shape
    add_layer_norm_kernel[(M,)](x, residual, w, b, total, out, N, 1e-5, BLOCK=1024)
    return total, out


def reference(x, residual, w, b):
    total = x + residual
    return total, torch.nn.functional.layer_norm(total, (x.shape[-1],), w, b, 1e-5)
