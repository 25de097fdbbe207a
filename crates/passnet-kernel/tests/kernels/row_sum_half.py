# wrapper: run
# input: x float16 [19, 90] normal
# tolerance: 2e-3
import torch
import triton
import triton.language as tl


@triton.jit
def row_sum_half_kernel(x_ptr, out_ptr, N, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    mask = cols < N
    x = tl.load(x_ptr + row * N + cols, mask=mask, other=0.0).to(tl.float32)
    tl.store(out_ptr + row, tl.sum(x, axis=0))


def run(x):
    M, N = x.shape
    out = torch.empty((M,), dtype=x.dtype, device=x.device)
    row_sum_half_kernel[(M,)](x, out, N, BLOCK=triton.next_power_of_2(N))
    return out
