# wrapper: run
# input: a float16 [500] normal
# input: b float16 [500] normal
# tolerance: 2e-3
import torch
import triton
import triton.language as tl


@triton.jit
def gelu(x):
    return 0.5 * x * (1.0 + tl.erf(x * 0.7071067811865476))


@triton.jit
def geglu_kernel(a_ptr, b_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    a = tl.load(a_ptr + i, mask=mask).to(tl.float32)
    b = tl.load(b_ptr + i, mask=mask)
    tl.store(out_ptr + i, gelu(a).to(b.dtype) * b, mask=mask)


def run(a, b):
    out = torch.empty_like(a)
    geglu_kernel[(triton.cdiv(a.numel(), 128),)](a, b, out, a.numel(), BLOCK=128)
    return out
