# wrapper: run
# input: x float32 [2, 7, 3, 16] normal
# input: cos float32 [7, 8] uniform -1 1
# input: sin float32 [7, 8] uniform -1 1
import torch
import triton
import triton.language as tl


@triton.jit
def rotary_kernel(x_ptr, cos_ptr, sin_ptr, out_ptr, S, H, HALF: tl.constexpr):
    token = tl.program_id(0)
    head = tl.program_id(1)
    pos = token % S
    i = tl.arange(0, HALF)
    base = (token * H + head) * 2 * HALF
    a = tl.load(x_ptr + base + i)
    b = tl.load(x_ptr + base + HALF + i)
    c = tl.load(cos_ptr + pos * HALF + i)
    s = tl.load(sin_ptr + pos * HALF + i)
    tl.store(out_ptr + base + i, a * c - b * s)
    tl.store(out_ptr + base + HALF + i, b * c + a * s)


def run(x, cos, sin):
    B, S, H, D = x.shape
    out = torch.empty_like(x)
    rotary_kernel[(B * S, H)](x, cos, sin, out, S, H, HALF=D // 2)
    return out
