# graph: add_relu
"""Data-dependent control flow."""

import torch
import torch.nn.functional as F

from pass_dir.kernels import launch_binary


def pattern(x, y):
    if x.sum() > 0:
        return F.relu(x + y)
    return x + y


def replacement_args(x, y):
    return (x, y,)


def replacement_func():
    return launch_binary
