# wrapper: run
# tolerance: 0
# input: x float32 [19, 90] normal
import torch
import triton
import triton.language as tl


@triton.jit
def row_max_kernel(x_ptr, out_ptr, N, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    mask = cols < N
    x = tl.load(x_ptr + row * N + cols, mask=mask, other=float('-inf'))
    tl.store(out_ptr + row, tl.max(x, axis=0))


def run(x):
    M, N = x.shape
    out = torch.empty((M,), dtype=x.dtype, device=x.device)
    row_max_kernel[(M,)](x, out, N, BLOCK=triton.next_power_of_2(N))
    return out
