# wrapper: run
# input: x float32 [777] normal
import torch
import triton
import triton.language as tl


@triton.jit
def selu_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    x = tl.load(x_ptr + offs, mask=mask, other=1)
    scale = 1.0507009873554805
    alpha = 1.6732632423543772
    tl.store(out_ptr + offs, scale * tl.where(x > 0, x, alpha * (tl.exp(x) - 1.0)), mask=mask)


def run(x):
    out = torch.empty_like(x)
    n = x.numel()
    selu_kernel[(triton.cdiv(n, 256),)](x, out, n, BLOCK=256)
    return out
