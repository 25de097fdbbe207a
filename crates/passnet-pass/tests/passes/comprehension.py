# graph: rotary
"""A comprehension over constants."""

import torch
import torch.nn.functional as F

from pass_dir.kernels import launch_unary


def pattern(x):
    pieces = [x[..., start:stop] for start, stop in ((None, 32), (32, None))]
    return torch.cat((-pieces[1], pieces[0]), dim=-1)


def replacement_args(x):
    return (x,)


def replacement_func():
    return launch_unary
