# graph: rotary
"""A helper with a size as argument."""

import torch
import torch.nn.functional as F

from pass_dir.kernels import launch_many


def rotate(x, half):
    return torch.cat((-x[..., half:], x[..., :half]), dim=-1)


def pattern(x, cos, sin):
    return x * cos + rotate(x, 32) * sin


def replacement_args(x, cos, sin):
    return (x, cos, sin,)


def replacement_func():
    return launch_many
