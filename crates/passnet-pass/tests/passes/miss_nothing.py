# graph: add_relu
"""Nothing in common."""

import torch
import torch.nn.functional as F

from pass_dir.kernels import launch_binary


def pattern(x, k):
    return F.conv2d(x, k)


def replacement_args(x, k):
    return (x, k,)


def replacement_func():
    return launch_binary
