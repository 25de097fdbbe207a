# wrapper: run
# input: x float32 [100] normal
import torch
import triton
import triton.language as tl


@triton.jit
def relu(x):
    return tl.maximum(x, 0.0)


@triton.jit
def square(x):
    return x * x


@triton.jit
def kernel(x_ptr, out_ptr, n, FIRST: tl.constexpr, REST: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = FIRST(tl.load(x_ptr + at, mask=at < n, other=0.0))
    for i in tl.static_range(len(REST)):
        x = REST[i](x)
    tl.store(out_ptr + at, x, mask=at < n)


def run(x):
    outs = []
    for first in (relu, square):
        out = torch.empty_like(x)
        kernel[(triton.cdiv(100, 32),)](x, out, 100, FIRST=first, REST=(square, relu), BLOCK=32)
        outs.append(out)
    return tuple(outs)
