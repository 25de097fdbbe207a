# wrapper: run
# input: x int32 [64] int -2 3
# input: y int32 [64] int -1 2
import torch
import triton
import triton.language as tl
import triton.language.core as core


@triton.jit
def pick(values, count: tl.constexpr):
    # A helper may be given what is only known at run time.
    return tl.where(values > count, count, values)


@triton.jit
def kernel(x_ptr, y_ptr, out_ptr, low_ptr, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n, other=float("-inf"))
    y = tl.load(y_ptr + at, mask=at < n, other=0.0)
    both = (x > 0).logical_and(y != 0)
    either = x.to(tl.int1).logical_or(y.to(tl.int1))
    tl.store(out_ptr + at, both.to(core.int32) + 2 * either.to(core.int32), mask=at < n)
    limit = tl.program_id(0) + 1
    tl.store(low_ptr + at, pick(x, limit), mask=at < n)


def run(x, y):
    out = torch.empty_like(x)
    low = torch.empty_like(x)
    kernel[(1,)](x, y, out, low, 64, BLOCK=64)
    return out, low
