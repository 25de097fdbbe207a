# graph: swiglu
"""Tuple unpacking."""

import torch
import torch.nn.functional as F

from pass_dir.kernels import launch_unary


def pattern(x):
    gate, up = x.chunk(2, dim=-1)
    return F.silu(gate) * up


def replacement_args(x):
    return (x,)


def replacement_func():
    return launch_unary
