# wrapper: run
# input: x float32 [64] normal
import torch
import triton
import triton.language as tl


@triton.jit
def kernel(out_ptr, normal_ptr, seed, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    a, b, c, d = tl.randint4x(seed, at)
    u = tl.random.uint_to_uniform_float(a)
    v = tl.random.uint_to_uniform_float(b)
    first, second = tl.random.pair_uniform_to_normal(u, v)
    tl.store(out_ptr + at, u + tl.random.rand(seed, at))
    tl.store(normal_ptr + at, first + second)


def run(x):
    out, normal = torch.empty_like(x), torch.empty_like(x)
    kernel[(1,)](out, normal, 7, BLOCK=64)
    return out, normal
