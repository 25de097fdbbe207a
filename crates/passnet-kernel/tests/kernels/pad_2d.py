# wrapper: run
# tolerance: 0
# input: x float32 [9, 11] normal
import torch
import triton
import triton.language as tl


@triton.jit
def pad_kernel(x_ptr, out_ptr, H, W, OH, OW, top, left, value, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    col = tl.arange(0, BLOCK)
    r = row - top
    c = col - left
    inside = (r >= 0) & (r < H) & (c >= 0) & (c < W)
    x = tl.load(x_ptr + r * W + c, mask=inside, other=value)
    tl.store(out_ptr + row * OW + col, x, mask=col < OW)


def run(x):
    H, W = x.shape
    out = torch.empty((H + 3, W + 5), dtype=x.dtype, device=x.device)
    pad_kernel[(H + 3,)](x, out, H, W, H + 3, W + 5, 1, 2, 0.5, BLOCK=16)
    return out
