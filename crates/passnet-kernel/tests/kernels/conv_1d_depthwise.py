# wrapper: run
# input: x float32 [2, 4, 40] normal
# input: w float32 [4, 3] normal
import torch
import triton
import triton.language as tl


@triton.jit
def conv_kernel(x_ptr, w_ptr, out_ptr, C, L, K: tl.constexpr, BLOCK: tl.constexpr):
    nc = tl.program_id(0)
    c = nc % C
    i = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    acc = tl.zeros((BLOCK,), dtype=tl.float32)
    for k in tl.static_range(K):
        at = i + k - K // 2
        x = tl.load(x_ptr + nc * L + at, mask=(at >= 0) & (at < L), other=0.0)
        acc += x * tl.load(w_ptr + c * K + k)
    tl.store(out_ptr + nc * L + i, acc, mask=i < L)


def run(x, w):
    N, C, L = x.shape
    out = torch.empty_like(x)
    conv_kernel[(N * C, triton.cdiv(L, 16))](x, w, out, C, L, K=w.shape[1], BLOCK=16)
    return out
