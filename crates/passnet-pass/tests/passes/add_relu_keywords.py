# graph: add_relu
"""Everything by keyword, defaults written out."""

import torch
import torch.nn.functional as F

from pass_dir.kernels import launch_binary


def pattern(lhs, rhs):
    total = torch.add(input=lhs, other=rhs, alpha=1)
    return F.relu(input=total, inplace=False)


def replacement_args(lhs, rhs):
    return (lhs, rhs,)


def replacement_func():
    return launch_binary
