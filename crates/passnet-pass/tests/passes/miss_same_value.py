# graph: rotary
"""One value where the graph has two."""

import torch
import torch.nn.functional as F

from pass_dir.kernels import launch_binary


def pattern(x, c):
    return x * c + x * c


def replacement_args(x, c):
    return (x, c,)


def replacement_func():
    return launch_binary
