# graph: rotary
"""Python slices against slice()."""

import torch
import torch.nn.functional as F

from pass_dir.kernels import launch_unary


def pattern(x):
    x1 = x[..., :32]
    x2 = x[..., 32:]
    return torch.cat((-x2, x1), dim=-1)


def replacement_args(x):
    return (x,)


def replacement_func():
    return launch_unary
