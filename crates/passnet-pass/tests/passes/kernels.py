"""Kernels and a dispatching wrapper that several passes share."""

import torch
import triton
import triton.language as tl


@triton.jit
def unary_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, tl.maximum(x, 0.0), mask=mask)


@triton.jit
def binary_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, tl.maximum(x + y, 0.0), mask=mask)


def grid_for(n, block):
    return (triton.cdiv(n, block),)


@torch.fx.wrap
def launch_unary(x):
    out = torch.empty_like(x)
    n = x.numel()
    unary_kernel[grid_for(n, 1024)](x, out, n, BLOCK=1024)
    return out


@torch.fx.wrap
def launch_binary(x, y):
    out = torch.empty_like(x)
    n = x.numel()
    binary_kernel[grid_for(n, 1024)](x, y, out, n, BLOCK=1024)
    return out


@torch.fx.wrap
def launch_many(*args):
    x = args[0]
    out = torch.empty_like(x)
    n = x.numel()
    unary_kernel[grid_for(n, 1024)](x, out, n, BLOCK=1024)
    return out


@torch.fx.wrap
def dispatch(x, y, route):
    if route == "add_relu":
        return launch_binary(x, y)
    if route == "relu":
        return launch_unary(x)
    raise ValueError(route)
