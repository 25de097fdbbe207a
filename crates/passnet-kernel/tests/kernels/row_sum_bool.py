# wrapper: run
# input: x bool [19, 90] int 0 2
import torch
import triton
import triton.language as tl


@triton.jit
def row_sum_bool_kernel(x_ptr, out_ptr, N, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    mask = cols < N
    x = tl.load(x_ptr + row * N + cols, mask=mask, other=0)
    tl.store(out_ptr + row, tl.sum(x.to(tl.int32), axis=0))


def run(x):
    M, N = x.shape
    out = torch.empty((M,), dtype=torch.int32, device=x.device)
    row_sum_bool_kernel[(M,)](x, out, N, BLOCK=triton.next_power_of_2(N))
    return out
