# graph: mask
"""A tensor made inside the pattern."""

import torch
import torch.nn.functional as F

from pass_dir.kernels import launch_unary


def pattern(x):
    m = torch.tensor(1.0, dtype=torch.float32) - x
    return m.masked_fill(m.to(torch.bool), -3.4028234663852886e+38)


def replacement_args(x):
    return (x,)


def replacement_func():
    return launch_unary
