# graph: add_relu
"""An operation that does not exist."""

import torch

from pass_dir.kernels import launch_binary


def pattern(x, y):
    return torch.nn.functional.rellu(x + y)


def replacement_args(x, y):
    return (x, y,)


def replacement_func():
    return launch_binary
