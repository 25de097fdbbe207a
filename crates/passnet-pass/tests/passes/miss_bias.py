# graph: swiglu
"""The graph passes no bias."""

import torch
import torch.nn.functional as F

from pass_dir.kernels import launch_many


def pattern(x, w, b):
    return F.linear(x, w, b)


def replacement_args(x, w, b):
    return (x, w, b,)


def replacement_func():
    return launch_many
