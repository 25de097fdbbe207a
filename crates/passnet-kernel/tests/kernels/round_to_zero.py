# wrapper: run
# input: x float32 [256] uniform -70000 70000
# input: y float32 [256] uniform -1 1
import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, y_ptr, out_ptr, half_ptr, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at)
    y = tl.load(y_ptr + at)
    tl.store(out_ptr + at, x.to(tl.bfloat16, fp_downcast_rounding="rtz"))
    tl.store(half_ptr + at, y.to(tl.float16, fp_downcast_rounding="rtz"))


def run(x, y):
    out = torch.empty(x.shape, dtype=torch.bfloat16, device=x.device)
    half = torch.empty(x.shape, dtype=torch.float16, device=x.device)
    kernel[(1,)](x, y, out, half, BLOCK=256)
    return out, half
