import torch
import triton
import triton.language as tl


def pattern(x, y):
    return torch.nn.functional.relu(x * y, inplace=False)


def replacement_args(x, y):
    return (x, y)


@triton.jit
def kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = place < n
    x = tl.load(x_ptr + place, mask=inside)
    y = tl.load(y_ptr + place, mask=inside)
    product = x * y
    tl.store(out_ptr + place, tl.where(product < 0, 0.0, product), mask=inside)


@torch.fx.wrap
def fused(x, y):
    out = torch.empty_like(x)
    n = x.numel()
    kernel[(triton.cdiv(n, 4096),)](x, y, out, n, BLOCK=4096)
    return out


def replacement_func():
    return fused
