# graph: attention
"""Operations in another order."""

import torch
import torch.nn.functional as F

from pass_dir.kernels import launch_binary


def pattern(s, m):
    return F.softmax((s + m) / 8.0, dim=-1)


def replacement_args(s, m):
    return (s, m,)


def replacement_func():
    return launch_binary
