# graph: embedding_norm
"""Constants at the top of the file."""

import torch
import torch.nn.functional as F

from pass_dir.kernels import launch_many


HIDDEN = 12 * 64
EPS = 1e-12


def pattern(x, w, b):
    return F.layer_norm(x, [HIDDEN], w, b, EPS)


def replacement_args(x, w, b):
    return (x, w, b,)


def replacement_func():
    return launch_many
