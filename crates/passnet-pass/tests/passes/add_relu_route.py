# graph: add_relu
"""A shared wrapper with a route string."""

import torch
import torch.nn.functional as F

from pass_dir.kernels import dispatch


def pattern(x, y):
    return F.relu(x + y)


def replacement_args(x, y):
    return (x, y, "add_relu")


def replacement_func():
    return dispatch
