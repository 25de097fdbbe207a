# wrapper: run
# input: x float32 [3, 5, 6, 7] normal
# input: scale float32 [5] normal
import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, scale_ptr, out_ptr, n, C, HW, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    channel = (offs // HW) % C
    x = tl.load(x_ptr + offs, mask=mask)
    scale = tl.load(scale_ptr + channel, mask=mask)
    tl.store(out_ptr + offs, x * scale, mask=mask)


def run(x, scale):
    N, C, H, W = x.shape
    out = torch.empty_like(x)
    n = x.numel()
    kernel[(triton.cdiv(n, 128),)](x, scale, out, n, C, H * W, BLOCK=128)
    return out
