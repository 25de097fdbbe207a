# graph: heads
"""Starred arguments and a choice made by a constant."""

import torch
import torch.nn.functional as F

from pass_dir.kernels import launch_unary


SHAPE = (1, -1, 12, 64)
PERMUTE = False


def pattern(x):
    return x.view(*SHAPE).permute(0, 2, 1, 3) if PERMUTE else x.view(*SHAPE).transpose(1, 2)


def replacement_args(x):
    return (x,)


def replacement_func():
    return launch_unary
