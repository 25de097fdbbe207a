# graph: rotary
"""Other slice bounds: two changes."""

import torch
import torch.nn.functional as F

from pass_dir.kernels import launch_unary


def pattern(x):
    return torch.cat((-x[..., 64:], x[..., :64]), dim=-1)


def replacement_args(x):
    return (x,)


def replacement_func():
    return launch_unary
