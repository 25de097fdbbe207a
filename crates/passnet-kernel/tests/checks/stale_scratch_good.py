# wrapper: run
# input: x float32 [100] normal
import torch
import triton
import triton.language as tl


@triton.jit
def fill(x_ptr, tmp_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(tmp_ptr + i, tl.load(x_ptr + i, mask=i < n), mask=i < n)


@triton.jit
def use(tmp_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.load(tmp_ptr + i, mask=i < n) + 1, mask=i < n)


def run(x):
    n = x.numel()
    tmp = torch.empty_like(x)
    out = torch.empty_like(x)
    fill[(triton.cdiv(n, 64),)](x, tmp, n, BLOCK=64)
    use[(triton.cdiv(n, 64),)](tmp, out, n, BLOCK=64)
    return out
