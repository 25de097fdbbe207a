# wrapper: run
# input: x float32 [8, 40] normal
import torch
import triton
import triton.language as tl


@triton.jit
def stats_kernel(x_ptr, mean_ptr, max_ptr, N, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * N + i, mask=i < N, other=0.0)
    tl.store(mean_ptr + row, tl.sum(x, axis=0) / N)
    tl.store(max_ptr + row, tl.max(tl.where(i < N, x, float("-inf")), axis=0))


def run(x):
    rows = x.shape[0]
    mean, top = [torch.empty(rows, dtype=x.dtype, device=x.device) for _ in range(2)]
    stats_kernel[(rows,)](x, mean, top, x.shape[1], BLOCK=64)
    return mean, top
