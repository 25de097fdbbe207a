# wrapper: run
# input: x float32 [2, 6, 5, 5] normal
# input: w float32 [6] normal
# input: b float32 [6] normal
# value: 3
import torch
import triton
import triton.language as tl


@triton.jit
def group_norm_kernel(x_ptr, w_ptr, b_ptr, out_ptr, C, HW, G, eps, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    group = pid % G
    channels = C // G
    n = channels * HW
    i = tl.arange(0, BLOCK)
    mask = i < n
    base = pid * n
    x = tl.load(x_ptr + base + i, mask=mask, other=0.0)
    mean = tl.sum(x, 0) / n
    d = tl.where(mask, x - mean, 0.0)
    rstd = tl.rsqrt(tl.sum(d * d, 0) / n + eps)
    c = group * channels + i // HW
    w = tl.load(w_ptr + c, mask=mask)
    b = tl.load(b_ptr + c, mask=mask)
    tl.store(out_ptr + base + i, d * rstd * w + b, mask=mask)


def run(x, w, b, groups):
    N, C, H, W = x.shape
    out = torch.empty_like(x)
    block = triton.next_power_of_2(C // groups * H * W)
    group_norm_kernel[(N * groups,)](x, w, b, out, C, H * W, groups, 1e-5, BLOCK=block)
    return out
