# wrapper: run
# input: x float32 [20, 32] normal
import torch
import triton
import triton.language as tl


@triton.jit
def column_sum_kernel(x_ptr, out_ptr, M, N: tl.constexpr):
    ptrs = x_ptr + tl.arange(0, N)
    acc = tl.zeros((N,), tl.float32)
    for _ in range(M):
        acc += tl.load(ptrs)
        ptrs += N
    tl.store(out_ptr + tl.arange(0, N), acc)


def run(x):
    M, N = x.shape
    out = torch.empty((N,), dtype=x.dtype, device=x.device)
    column_sum_kernel[(1,)](x, out, M, N)
    return out
