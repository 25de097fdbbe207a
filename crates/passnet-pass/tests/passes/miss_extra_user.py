# graph: embedding_norm
"""The inner sum is returned by the graph."""

import torch
import torch.nn.functional as F

from pass_dir.kernels import launch_many


def pattern(x, r, w, b):
    return F.layer_norm(F.dropout(x, 0.1, False) + r, (768,), w, b, 1e-12)


def replacement_args(x, r, w, b):
    return (x, r, w, b,)


def replacement_func():
    return launch_many
