# graph: add_relu
"""The plainest pass: one expression."""

import torch
import torch.nn.functional as F

from pass_dir.kernels import launch_binary


def pattern(x, y):
    return F.relu(x + y)


def replacement_args(x, y):
    return (x, y,)


def replacement_func():
    return launch_binary
