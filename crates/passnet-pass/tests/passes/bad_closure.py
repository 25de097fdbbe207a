# graph: add_relu
"""A new function at every call."""

import torch
import torch.nn.functional as F

from pass_dir.kernels import launch_binary


def pattern(x, y):
    return F.relu(x + y)


def replacement_args(x, y):
    return (x, y,)


def replacement_func():
    def fresh(x, y):
        return launch_binary(x, y)

    return fresh
