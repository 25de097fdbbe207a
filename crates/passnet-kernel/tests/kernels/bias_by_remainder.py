# wrapper: run
# tolerance: 0
# input: x float32 [12, 128] normal
# input: bias float32 [128] normal
# input: shift float32 [12] normal
import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, bias_ptr, shift_ptr, out_ptr, n, COLS: tl.constexpr, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    x = tl.load(x_ptr + offs, mask=mask)
    bias = tl.load(bias_ptr + offs % COLS, mask=mask)
    shift = tl.load(shift_ptr + offs // COLS, mask=mask, other=0.0)
    tl.store(out_ptr + offs, tl.maximum(x + bias, shift), mask=mask)


def run(x, bias, shift):
    out = torch.empty_like(x)
    n = x.numel()
    kernel[(triton.cdiv(n, 64),)](x, bias, shift, out, n, COLS=x.shape[1], BLOCK=64)
    return out
