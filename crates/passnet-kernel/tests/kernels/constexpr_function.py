# wrapper: run
# input: x float32 [96] normal
import torch
import triton
import triton.language as tl

SMALLEST = 16


@triton.constexpr_function
def block_of(n):
    size = SMALLEST
    while size < n:
        size *= 2
    return size


@triton.constexpr_function
def first_divisor(n):
    for d in range(2, n):
        if n % d == 0:
            return d
    return n


@triton.jit
def kernel(x_ptr, out_ptr, N: tl.constexpr):
    at = tl.arange(0, block_of(N))
    x = tl.load(x_ptr + at, mask=at < N)
    tl.store(out_ptr + at, x * first_divisor(N + 3), mask=at < N)


def run(x):
    out = torch.empty_like(x)
    kernel[(1,)](x, out, N=96)
    return out
