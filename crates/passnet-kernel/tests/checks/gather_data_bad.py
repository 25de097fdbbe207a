# wrapper: run
# input: x float32 [50] normal
# input: index int32 [70] int 0 60
# expect: out-of-bounds
import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, index_ptr, out_ptr, n, size, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    at = tl.load(index_ptr + i, mask=i < n, other=0)
    tl.store(out_ptr + i, tl.load(x_ptr + at, mask=i < n), mask=i < n)


def run(x, index):
    out = torch.empty((index.numel(),), dtype=x.dtype, device=x.device)
    kernel[(triton.cdiv(index.numel(), 64),)](x, index, out, index.numel(), x.numel(), BLOCK=64)
    return out
