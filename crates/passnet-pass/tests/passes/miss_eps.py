# graph: embedding_norm
"""Another epsilon."""

import torch
import torch.nn.functional as F

from pass_dir.kernels import launch_many


def pattern(x, w, b):
    return F.layer_norm(x, (768,), w, b, 1e-05)


def replacement_args(x, w, b):
    return (x, w, b,)


def replacement_func():
    return launch_many
