# graph: updated_view
"""An update in place that a later node sees."""

import torch
import torch.nn.functional as F

from pass_dir.kernels import launch_binary


def pattern(x, y):
    return (x.view(-1) + y).exp()


def replacement_args(x, y):
    return (x, y,)


def replacement_func():
    return launch_binary
