# wrapper: run
# input: x float32 [4, 64] normal
import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, SCALES: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    parts = [tl.load(x_ptr + at) * s for s in SCALES]
    total = parts[0]
    total += parts[1]
    total += parts[2]
    first, *others = parts
    tl.store(out_ptr + at, total + first + others[1])


def run(x):
    out = torch.empty((64,), dtype=x.dtype, device=x.device)
    kernel[(1,)](x, out, SCALES=(1, 3, 5), BLOCK=64)
    return out
