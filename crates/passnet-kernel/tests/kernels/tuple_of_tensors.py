# wrapper: run
# input: a float32 [100] normal
# input: b float32 [100] normal
# input: c float32 [100] normal
import torch
import triton
import triton.language as tl


@triton.jit
def weighted(pair, weights, at, mask):
    first, second = pair
    x = tl.load(first + at, mask=mask, other=0.0)
    y = tl.load(second + at, mask=mask, other=0.0)
    return x * weights[0] + y * weights[1]


@triton.jit
def kernel(ptrs, nested, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for i in tl.static_range(len(ptrs)):
        total += tl.load(ptrs[i] + at, mask=mask, other=0.0)
    (left, right), out, weights = nested
    total += weighted((left, right), weights, at, mask)
    tl.store(out + at, total, mask=mask)


def run(a, b, c):
    out = torch.empty_like(a)
    kernel[(triton.cdiv(100, 32),)]((a, b, c), ((a, c), out, (2.0, 0.5)), 100, BLOCK=32)
    return out
