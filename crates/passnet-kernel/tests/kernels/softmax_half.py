# wrapper: run
# input: x float16 [19, 90] normal
# tolerance: 2e-3
import torch
import triton
import triton.language as tl


@triton.jit
def softmax_half_kernel(x_ptr, out_ptr, N, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    mask = cols < N
    x = tl.load(x_ptr + row * N + cols, mask=mask, other=float('-inf')).to(tl.float32)
    x = x - tl.max(x, axis=0)
    e = tl.exp(x)
    tl.store(out_ptr + row * N + cols, e / tl.sum(e, axis=0), mask=mask)


def run(x):
    M, N = x.shape
    out = torch.empty((M, N), dtype=x.dtype, device=x.device)
    softmax_half_kernel[(M,)](x, out, N, BLOCK=triton.next_power_of_2(N))
    return out
