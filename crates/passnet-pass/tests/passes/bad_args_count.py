# graph: add_relu
"""replacement_args takes other arguments."""

import torch
import torch.nn.functional as F

from pass_dir.kernels import launch_binary


def pattern(x, y):
    return F.relu(x + y)


def replacement_args(x):
    return (x,)


def replacement_func():
    return launch_binary
