# graph: sin_cos
"""1 is not 1.0."""

import torch
import torch.nn.functional as F

from pass_dir.kernels import launch_unary


def pattern(x):
    return x.cos() * 1


def replacement_args(x):
    return (x,)


def replacement_func():
    return launch_unary
