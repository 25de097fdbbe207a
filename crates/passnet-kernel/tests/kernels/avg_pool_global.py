# wrapper: run
# input: x float32 [2, 5, 6, 7] normal
import torch
import triton
import triton.language as tl


@triton.jit
def pool_kernel(x_ptr, out_ptr, HW, BLOCK: tl.constexpr):
    nc = tl.program_id(0)
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, HW, BLOCK):
        i = start + tl.arange(0, BLOCK)
        total += tl.load(x_ptr + nc * HW + i, mask=i < HW, other=0.0)
    tl.store(out_ptr + nc, tl.sum(total, 0) / HW)


def run(x):
    N, C, H, W = x.shape
    out = torch.empty((N, C, 1, 1), dtype=x.dtype, device=x.device)
    pool_kernel[(N * C,)](x, out, H * W, BLOCK=16)
    return out
