# wrapper: run
# tolerance: 0
# input: x float32 [2, 3, 5, 4] normal
import torch
import triton
import triton.language as tl


@triton.jit
def upsample_kernel(x_ptr, out_ptr, H, W, n, SCALE: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    ow = i % (W * SCALE)
    oh = (i // (W * SCALE)) % (H * SCALE)
    nc = i // (W * SCALE * H * SCALE)
    x = tl.load(x_ptr + (nc * H + oh // SCALE) * W + ow // SCALE, mask=mask)
    tl.store(out_ptr + i, x, mask=mask)


def run(x):
    N, C, H, W = x.shape
    out = torch.empty((N, C, H * 2, W * 2), dtype=x.dtype, device=x.device)
    n = out.numel()
    upsample_kernel[(triton.cdiv(n, 128),)](x, out, H, W, n, SCALE=2, BLOCK=128)
    return out
