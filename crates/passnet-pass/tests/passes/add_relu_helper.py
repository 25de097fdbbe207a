# graph: add_relu
"""A helper with a function as default argument."""

import torch
import torch.nn.functional as F

from pass_dir.kernels import launch_binary


def activate(value, function=F.relu):
    return function(value)


def pattern(x, y):
    return activate(x + y)


def replacement_args(x, y):
    return (x, y,)


def replacement_func():
    return launch_binary
