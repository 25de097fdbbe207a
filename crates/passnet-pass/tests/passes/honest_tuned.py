# graph: add_relu
"""Tuned by shape, honestly."""

import torch
import torch.nn.functional as F
import triton
import triton.language as tl

from pass_dir.kernels import binary_kernel, grid_for


@torch.fx.wrap
def wrapper(x, y):
    block = 256 if x.shape[-1] < 512 else 1024
    out = torch.empty_like(x)
    n = x.numel()
    binary_kernel[grid_for(n, block)](x, y, out, n, BLOCK=block, num_warps=4 if block > 512 else 2)
    return out


def pattern(x, y):
    return F.relu(x + y)


def replacement_args(x, y):
    return (x, y)


def replacement_func():
    return wrapper
