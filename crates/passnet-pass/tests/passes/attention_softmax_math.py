# graph: attention
"""A constant computed by math."""

import math
import torch

from pass_dir.kernels import launch_binary


def pattern(s, m):
    return torch.softmax(s / math.sqrt(64) + m, -1)


def replacement_args(s, m):
    return (s, m,)


def replacement_func():
    return launch_binary
