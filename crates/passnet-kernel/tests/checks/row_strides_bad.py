# wrapper: run
# input: x float32 [9, 20] normal stride [1, 9]
# expect: stride-assumption
import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, N, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * N + i, mask=i < N, other=0.0)
    tl.store(out_ptr + row, tl.sum(x, axis=0))


def run(x):
    M, N = x.shape
    out = torch.empty((M,), dtype=x.dtype, device=x.device)
    kernel[(M,)](x, out, N, BLOCK=32)
    return out
