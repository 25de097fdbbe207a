# graph: linear_gelu
"""Private spellings."""

import torch
import torch.nn.functional as F

from pass_dir.kernels import launch_many


def pattern(x, w, b):
    y = torch._C._nn.linear(x, w, b)
    return torch._C._nn.gelu(y, approximate='none')


def replacement_args(x, w, b):
    return (x, w, b,)


def replacement_func():
    return launch_many
