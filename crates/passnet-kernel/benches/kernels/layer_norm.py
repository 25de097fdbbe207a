# wrapper: run
# input: x float32 [4096, 1024] normal
# input: w float32 [1024] normal
# input: b float32 [1024] normal
import torch
import triton
import triton.language as tl


@triton.jit
def layer_norm_kernel(x_ptr, w_ptr, b_ptr, out_ptr, N, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    mask = cols < N
    x = tl.load(x_ptr + row * N + cols, mask=mask, other=0.0).to(tl.float32)
    mean = tl.sum(x, axis=0) / N
    d = tl.where(mask, x - mean, 0.0)
    var = tl.sum(d * d, axis=0) / N
    rstd = 1.0 / tl.sqrt(var + eps)
    w = tl.load(w_ptr + cols, mask=mask)
    b = tl.load(b_ptr + cols, mask=mask)
    tl.store(out_ptr + row * N + cols, d * rstd * w + b, mask=mask)


def run(x, w, b):
    out = torch.empty_like(x)
    M, N = x.shape
    layer_norm_kernel[(M,)](x, w, b, out, N, 1e-5, BLOCK=triton.next_power_of_2(N))
    return out


def reference(x, w, b):
    return torch.nn.functional.layer_norm(x, (x.shape[-1],), w, b, 1e-5)
