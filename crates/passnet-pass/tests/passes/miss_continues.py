# graph: linear_gelu
"""The pattern goes on where the graph ends."""

import torch
import torch.nn.functional as F

from pass_dir.kernels import launch_many


def pattern(x, w, b, r):
    return F.gelu(F.linear(x, w, b)) + r


def replacement_args(x, w, b, r):
    return (x, w, b, r,)


def replacement_func():
    return launch_many
