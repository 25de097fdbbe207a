# wrapper: run
# input: x float32 [5, 64] normal
import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, MODE: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = row * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at)
    if MODE == 1:
        x = x * 2
    elif row == 0:
        x = x + 1
    elif MODE == 3:
        x = x - 5
    elif row == 2:
        x = x - 1
    elif MODE == 2:
        x = x * 3
    else:
        x = x * 4
    tl.store(out_ptr + at, x)


def run(x):
    out = torch.empty_like(x)
    kernel[(5,)](x, out, MODE=2, BLOCK=64)
    return out
