# graph: linear_gelu
"""An import under another name."""

from torch.nn import functional as G

from pass_dir.kernels import launch_many


def pattern(x, w, b):
    return G.gelu(G.linear(x, w, bias=b))


def replacement_args(x, w, b):
    return (x, w, b,)


def replacement_func():
    return launch_many
