# wrapper: run
# input: x float32 [2, 5, 7, 7] normal
# input: mean float32 [5] normal
# input: var float32 [5] uniform 0.5 2
# input: w float32 [5] normal
# input: b float32 [5] normal
import torch
import triton
import triton.language as tl


@triton.jit
def batch_norm_kernel(x_ptr, mean_ptr, var_ptr, w_ptr, b_ptr, out_ptr, HW, C, BLOCK: tl.constexpr):
    nc = tl.program_id(0)
    c = nc % C
    scale = tl.load(w_ptr + c) * tl.rsqrt(tl.load(var_ptr + c) + 1e-5)
    shift = tl.load(b_ptr + c) - tl.load(mean_ptr + c) * scale
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + nc * HW + i, mask=i < HW)
    tl.store(out_ptr + nc * HW + i, tl.maximum(x * scale + shift, 0.0), mask=i < HW)


def run(x, mean, var, w, b):
    N, C, H, W = x.shape
    out = torch.empty_like(x)
    batch_norm_kernel[(N * C,)](x, mean, var, w, b, out, H * W, C, BLOCK=64)
    return out
