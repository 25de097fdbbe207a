# wrapper: run
# tolerance: 0
# input: x float32 [40, 30] normal stride [1, 40]
import torch
import triton
import triton.language as tl


@triton.jit
def copy_kernel(x_ptr, out_ptr, M, N, sm, sn, BLOCK: tl.constexpr):
    m = tl.program_id(0)
    n = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + m * sm + n * sn, mask=n < N)
    tl.store(out_ptr + m * N + n, x * 2, mask=n < N)


def run(x):
    M, N = x.shape
    out = torch.empty((M, N), dtype=x.dtype, device=x.device)
    copy_kernel[(M,)](x, out, M, N, x.stride(0), x.stride(1), BLOCK=32)
    return out
