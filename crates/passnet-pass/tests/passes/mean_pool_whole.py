# graph: mean_pool
"""A value used on both sides of a division."""

import torch
import torch.nn.functional as F

from pass_dir.kernels import launch_binary


def pattern(x, m):
    w = m.unsqueeze(-1).expand(1, 16, 384).float()
    return (x * w).sum(1) / torch.clamp(w.sum(1), min=1e-9)


def replacement_args(x, m):
    return (x, m,)


def replacement_func():
    return launch_binary
