# graph: rotary
"""A whole rotary embedding with a local constant."""

import torch
import torch.nn.functional as F

from pass_dir.kernels import launch_many


def pattern(x, cos, sin):
    half = 32
    rotated = torch.cat([-x[..., half:], x[..., :half]], -1)
    return x * cos + rotated * sin


def replacement_args(x, cos, sin):
    return (x, cos, sin,)


def replacement_func():
    return launch_many
