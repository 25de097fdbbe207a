# graph: embedding_norm
"""A literal of the graph becomes an argument of the wrapper."""

import torch
import torch.nn.functional as F

from pass_dir.kernels import launch_many


def pattern(x, w, b, eps):
    return F.layer_norm(x, (768,), w, b, eps)


def replacement_args(x, w, b, eps):
    return (x, w, b, eps,)


def replacement_func():
    return launch_many
