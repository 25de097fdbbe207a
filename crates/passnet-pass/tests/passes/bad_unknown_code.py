# graph: add_relu
"""Code from outside."""

import numpy
import torch

from pass_dir.kernels import launch_binary


def pattern(x, y):
    return numpy.add(x, y)


def replacement_args(x, y):
    return (x, y,)


def replacement_func():
    return launch_binary
