# wrapper: run
# input: x float32 [300] normal
# value: 1234
import torch
import triton
import triton.language as tl


@triton.jit
def dropout_kernel(x_ptr, out_ptr, n, p, seed, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    x = tl.load(x_ptr + i, mask=mask)
    keep = tl.rand(seed, i) > p
    tl.store(out_ptr + i, tl.where(keep, x / (1 - p), 0.0), mask=mask)


def run(x, seed):
    out = torch.empty_like(x)
    dropout_kernel[(triton.cdiv(x.numel(), 128),)](x, out, x.numel(), 0.25, seed, BLOCK=128)
    return out
