# wrapper: run
# tolerance: 0
# input: x float32 [200] normal
# input: index int32 [300] int 0 200
import torch
import triton
import triton.language as tl


@triton.jit
def gather_kernel(x_ptr, index_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    at = tl.load(index_ptr + i, mask=mask, other=0)
    tl.store(out_ptr + i, tl.load(x_ptr + at, mask=mask), mask=mask)


def run(x, index):
    out = torch.empty((index.numel(),), dtype=x.dtype, device=x.device)
    n = index.numel()
    gather_kernel[(triton.cdiv(n, 64),)](x, index, out, n, BLOCK=64)
    return out
