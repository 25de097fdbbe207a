# graph: training
"""Random numbers cannot be replaced."""

import torch
import torch.nn.functional as F

from pass_dir.kernels import launch_unary


def pattern(x):
    return F.dropout(x.sigmoid(), 0.5, True) * 2.0


def replacement_args(x):
    return (x,)


def replacement_func():
    return launch_unary
