# graph: sin_cos
"""Two outputs, a value used twice."""

import torch
import torch.nn.functional as F

from pass_dir.kernels import launch_unary


def pattern(x):
    table = torch.cat((x, x), dim=-1)
    return table.cos() * 1.0, table.sin() * 1.0


def replacement_args(x):
    return (x,)


def replacement_func():
    return launch_unary
