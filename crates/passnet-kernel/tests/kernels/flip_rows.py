# wrapper: run
# tolerance: 0
# input: x float32 [5, 64] normal
import torch
import triton
import triton.language as tl


@triton.jit
def flip_rows_kernel(x_ptr, out_ptr, N, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    mask = cols < N
    x = tl.load(x_ptr + row * N + cols)
    tl.store(out_ptr + row * N + cols, tl.flip(x, 0))


def run(x):
    M, N = x.shape
    out = torch.empty((M, N), dtype=x.dtype, device=x.device)
    flip_rows_kernel[(M,)](x, out, N, BLOCK=triton.next_power_of_2(N))
    return out
