# graph: swiglu
"""Subscripts."""

import torch
import torch.nn.functional as F

from pass_dir.kernels import launch_unary


def pattern(x):
    parts = torch.chunk(x, 2, -1)
    return F.silu(parts[0]) * parts[1]


def replacement_args(x):
    return (x,)


def replacement_func():
    return launch_unary
