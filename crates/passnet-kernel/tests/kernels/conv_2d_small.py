# wrapper: run
# input: x float32 [1, 3, 8, 9] normal
# input: w float32 [4, 3, 3, 3] normal
# input: b float32 [4] normal
import torch
import triton
import triton.language as tl


@triton.jit
def conv_kernel(x_ptr, w_ptr, b_ptr, out_ptr, C, H, W, OC, KH: tl.constexpr, KW: tl.constexpr, BLOCK: tl.constexpr):
    oc = tl.program_id(0)
    oh = tl.program_id(1)
    ow = tl.arange(0, BLOCK)
    acc = tl.zeros((BLOCK,), dtype=tl.float32) + tl.load(b_ptr + oc)
    for c in range(C):
        for kh in range(KH):
            for kw in range(KW):
                h = oh + kh - 1
                w = ow + kw - 1
                inside = (h >= 0) & (h < H) & (w >= 0) & (w < W)
                x = tl.load(x_ptr + (c * H + h) * W + w, mask=inside, other=0.0)
                acc += x * tl.load(w_ptr + ((oc * C + c) * KH + kh) * KW + kw)
    tl.store(out_ptr + (oc * H + oh) * W + ow, tl.maximum(acc, 0.0), mask=ow < W)


def run(x, w, b):
    N, C, H, W = x.shape
    OC, _, KH, KW = w.shape
    out = torch.empty((N, OC, H, W), dtype=x.dtype, device=x.device)
    conv_kernel[(OC, H)](x, w, b, out, C, H, W, OC, KH, KW, BLOCK=16)
    return out
