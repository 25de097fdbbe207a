# graph: add_relu
"""Endless recursion."""

import torch
import torch.nn.functional as F

from pass_dir.kernels import launch_binary


def again(x, y):
    return again(x, y)


def pattern(x, y):
    return again(x, y)


def replacement_args(x, y):
    return (x, y,)


def replacement_func():
    return launch_binary
