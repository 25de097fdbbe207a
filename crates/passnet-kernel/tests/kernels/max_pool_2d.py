# wrapper: run
# tolerance: 0
# input: x float32 [2, 3, 10, 12] normal
import torch
import triton
import triton.language as tl


@triton.jit
def pool_kernel(x_ptr, out_ptr, H, W, OH, OW, n, BLOCK: tl.constexpr, K: tl.constexpr, S: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    ow = i % OW
    oh = (i // OW) % OH
    nc = i // (OW * OH)
    best = tl.full((BLOCK,), float("-inf"), tl.float32)
    for kh in tl.static_range(K):
        for kw in tl.static_range(K):
            h = oh * S + kh
            w = ow * S + kw
            x = tl.load(x_ptr + (nc * H + h) * W + w, mask=mask & (h < H) & (w < W), other=float("-inf"))
            best = tl.maximum(best, x)
    tl.store(out_ptr + i, best, mask=mask)


def run(x):
    N, C, H, W = x.shape
    OH, OW = (H - 3) // 2 + 1, (W - 3) // 2 + 1
    out = torch.empty((N, C, OH, OW), dtype=x.dtype, device=x.device)
    n = out.numel()
    pool_kernel[(triton.cdiv(n, 64),)](x, out, H, W, OH, OW, n, BLOCK=64, K=3, S=2)
    return out
