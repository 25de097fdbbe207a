# wrapper: run
# input: x float32 [64] normal
# value: True
# value: "relu"
import torch
import triton
import triton.language as tl


SCALE = tl.constexpr(0.5)


@triton.jit
def act_kernel(x_ptr, out_ptr, N: tl.constexpr, HAS_SCALE: tl.constexpr, ACT: tl.constexpr):
    i = tl.arange(0, N)
    x = tl.load(x_ptr + i)
    if HAS_SCALE:
        x = x * SCALE
    if ACT == "relu":
        x = tl.maximum(x, 0.0)
    elif ACT == "silu":
        x = x * tl.sigmoid(x)
    tl.store(out_ptr + i, x)


def run(x, scale, act):
    out = torch.empty_like(x)
    act_kernel[(1,)](x, out, N=x.numel(), HAS_SCALE=scale, ACT=act)
    return out
