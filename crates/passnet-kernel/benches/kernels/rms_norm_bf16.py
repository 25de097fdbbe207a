# wrapper: run
# input: x bfloat16 [4096, 1024] normal
# input: w bfloat16 [1024] normal
import torch
import triton
import triton.language as tl


@triton.jit
def rms_norm_kernel(x_ptr, w_ptr, out_ptr, N, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    mask = cols < N
    x = tl.load(x_ptr + row * N + cols, mask=mask, other=0.0).to(tl.float32)
    scale = tl.rsqrt(tl.sum(x * x, axis=0) / N + eps)
    w = tl.load(w_ptr + cols, mask=mask).to(tl.float32)
    tl.store(out_ptr + row * N + cols, x * scale * w, mask=mask)


def run(x, w):
    out = torch.empty_like(x)
    M, N = x.shape
    rms_norm_kernel[(M,)](x, w, out, N, 1e-6, BLOCK=triton.next_power_of_2(N))
    return out


def reference(x, w):
    y = x.float()
    y = y * torch.rsqrt(y.pow(2).mean(-1, keepdim=True) + 1e-6)
    return (y * w.float()).to(x.dtype)
