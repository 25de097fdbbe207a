"""Fused: sum, pow, pow, sum, sub.

One kernel: whole rows folded in one block. Arithmetic in float32, rounded where eager stores.
"""

import torch

from pass_dir.kernels import dispatch


def pattern(in_0):
    tmp_0 = in_0.sum(dim=1)
    tmp_1 = tmp_0.pow(2)
    tmp_2 = in_0.pow(2)
    tmp_3 = tmp_2.sum(dim=1)
    tmp_4 = tmp_1 - tmp_3
    return tmp_4


def replacement_args(in_0):
    return (in_0, "sum_pow_sum_sub")


def replacement_func():
    return dispatch
