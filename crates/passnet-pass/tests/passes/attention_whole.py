# graph: attention
"""The whole attention block."""

import torch
import torch.nn.functional as F

from pass_dir.kernels import launch_many


def pattern(q, k, v, m):
    scores = torch.matmul(q, k.transpose(-1, -2)) / 8.0
    weights = F.dropout(F.softmax(scores + m, dim=-1), 0.1, False)
    return weights @ v


def replacement_args(q, k, v, m):
    return (q, k, v, m,)


def replacement_func():
    return launch_many
