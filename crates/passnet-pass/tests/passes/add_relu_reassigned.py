# graph: add_relu
"""One name for several values."""

import torch
import torch.nn.functional as F

from pass_dir.kernels import launch_binary


def pattern(x, y):
    x = x + y
    x = F.relu(x)
    return x


def replacement_args(x, y):
    return (x, y,)


def replacement_func():
    return launch_binary
