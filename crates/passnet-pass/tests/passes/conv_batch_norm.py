# graph: bottleneck
"""Defaults of a convolution against written-out tuples; the value is updated in place by what follows."""

import torch
import torch.nn.functional as F

from pass_dir.kernels import launch_many


def pattern(x, k, m, v, w, b):
    return F.batch_norm(F.conv2d(x, k, padding=1), m, v, w, b)


def replacement_args(x, k, m, v, w, b):
    return (x, k, m, v, w, b,)


def replacement_func():
    return launch_many
