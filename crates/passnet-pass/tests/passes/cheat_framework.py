# graph: add_relu
"""The framework does the work."""

import torch
import torch.nn.functional as F
import triton
import triton.language as tl

from pass_dir.kernels import binary_kernel, grid_for


@torch.fx.wrap
def wrapper(x, y):
    out = torch.relu(x + y)
    return out


def pattern(x, y):
    return F.relu(x + y)


def replacement_args(x, y):
    return (x, y)


def replacement_func():
    return wrapper
