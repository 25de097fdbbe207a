# wrapper: run
# input: x float32 [19, 90] normal
# input: w float32 [90] normal
import torch
import triton
import triton.language as tl


@triton.jit
def rms_norm_kernel(x_ptr, out_ptr, N, w_ptr, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    mask = cols < N
    x = tl.load(x_ptr + row * N + cols, mask=mask, other=0.0).to(tl.float32)
    rms = tl.rsqrt(tl.sum(x * x, axis=0) / N + 1e-6)
    w = tl.load(w_ptr + cols, mask=mask)
    tl.store(out_ptr + row * N + cols, x * rms * w, mask=mask)


def run(x, w):
    M, N = x.shape
    out = torch.empty((M, N), dtype=x.dtype, device=x.device)
    rms_norm_kernel[(M,)](x, out, N, w, BLOCK=triton.next_power_of_2(N))
    return out
