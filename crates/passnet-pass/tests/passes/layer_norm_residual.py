# graph: embedding_norm
"""Two outputs: the norm and its input."""

import torch
import torch.nn.functional as F

from pass_dir.kernels import launch_many


def pattern(x, r, w, b):
    h = F.dropout(x, p=0.1, training=False) + r
    return F.layer_norm(h, (768,), w, b, 1e-12), h


def replacement_args(x, r, w, b):
    return (x, r, w, b,)


def replacement_func():
    return launch_many
