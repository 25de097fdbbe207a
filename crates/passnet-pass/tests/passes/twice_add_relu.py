# graph: twice
"""Matches twice in a row; the second match uses the first one's result."""

import torch
import torch.nn.functional as F

from pass_dir.kernels import launch_binary


def pattern(x, y):
    return (x + y).relu()


def replacement_args(x, y):
    return (x, y,)


def replacement_func():
    return launch_binary
