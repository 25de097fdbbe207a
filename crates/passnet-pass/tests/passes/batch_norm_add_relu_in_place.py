# graph: bottleneck
"""The same, updating in place."""

import torch
import torch.nn.functional as F

from pass_dir.kernels import launch_many


def pattern(x, m, v, w, b, r):
    y = F.batch_norm(x, m, v, w, b, False, 0.1, 1e-05)
    y += r
    return F.relu(y, inplace=True)


def replacement_args(x, m, v, w, b, r):
    return (x, m, v, w, b, r,)


def replacement_func():
    return launch_many
