# graph: rms_norm
"""float() is not to(float32) in the table of operations."""

import torch
import torch.nn.functional as F

from pass_dir.kernels import launch_binary


def pattern(x, w):
    h = x.float()
    scale = torch.rsqrt((h ** 2).mean(dim=-1, keepdim=True) + 1e-06)
    return w * (h * scale).to(torch.float16)


def replacement_args(x, w):
    return (x, w,)


def replacement_func():
    return launch_binary
