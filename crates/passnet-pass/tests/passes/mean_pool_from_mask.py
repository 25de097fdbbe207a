# graph: mean_pool
"""Reductions by function and by method."""

import torch
import torch.nn.functional as F

from pass_dir.kernels import launch_binary


def pattern(x, w):
    return torch.sum(x * w, dim=1) / w.sum(dim=1).clamp(min=1e-9)


def replacement_args(x, w):
    return (x, w,)


def replacement_func():
    return launch_binary
