# wrapper: run
# input: x float32 [2, 7, 4, 16] normal
# input: cos float32 [7, 8] uniform -1 1
# input: sin float32 [7, 8] uniform -1 1
import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, cos_ptr, sin_ptr, out_ptr, S, HEADS: tl.constexpr, HALF: tl.constexpr):
    token = tl.program_id(0)
    heads = tl.arange(0, HEADS)[:, None]
    i = tl.arange(0, HALF)[None, :]
    base = token * HEADS * 2 * HALF + heads * 2 * HALF + i
    c = tl.load(cos_ptr + (token % S) * HALF + i, mask=i < HALF, other=0.0)
    s = tl.load(sin_ptr + (token % S) * HALF + i)
    a = tl.load(x_ptr + base)
    b = tl.load(x_ptr + base + HALF)
    tl.store(out_ptr + base, a * c - b * s)
    tl.store(out_ptr + base + HALF, b * c + a * s)


def run(x, cos, sin):
    B, S, H, D = x.shape
    out = torch.empty_like(x)
    kernel[(B * S,)](x, cos, sin, out, S, HEADS=H, HALF=D // 2)
    return out
