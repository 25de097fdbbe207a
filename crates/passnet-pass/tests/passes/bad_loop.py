# graph: add_relu
"""A loop over a tensor."""

import torch
import torch.nn.functional as F

from pass_dir.kernels import launch_binary


def pattern(x, y):
    for row in x:
        y = y + row
    return y


def replacement_args(x, y):
    return (x, y,)


def replacement_func():
    return launch_binary
