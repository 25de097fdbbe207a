# wrapper: run
# input: a float32 [128, 128] normal
# expect: gpu-limits
import torch
import triton
import triton.language as tl


@triton.jit
def kernel(a_ptr, out_ptr, B: tl.constexpr):
    i = tl.arange(0, B)
    at = i[:, None] * B + i[None, :]
    a = tl.load(a_ptr + at)
    tl.store(out_ptr + at, tl.dot(a, a))


def run(a):
    out = torch.empty_like(a)
    kernel[(1,)](a, out, B=a.shape[0], num_warps=4, num_stages=4)
    return out
