# graph: bottleneck
"""Updates in place that nobody sees match plain operations."""

import torch
import torch.nn.functional as F

from pass_dir.kernels import launch_many


def pattern(x, m, v, w, b, r):
    return F.relu(F.batch_norm(x, m, v, w, b) + r)


def replacement_args(x, m, v, w, b, r):
    return (x, m, v, w, b, r,)


def replacement_func():
    return launch_many
