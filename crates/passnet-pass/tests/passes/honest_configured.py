# graph: add_relu
"""Configuration in classes, guards, fills, and tests of its own."""

from dataclasses import dataclass
from enum import IntEnum

import torch
import torch.nn.functional as F
import triton
import triton.language as tl

from pass_dir.kernels import binary_kernel


class Sizes:
    BLOCK = 1024


class Mode(IntEnum):
    RELU = 0
    GELU = 1


@dataclass(frozen=True)
class Tuning:
    block: int = Sizes.BLOCK

    def grid(self, n):
        return (triton.cdiv(n, self.block),)


TUNING = Tuning()


@torch.fx.wrap
def wrapper(x, y, mode):
    out = torch.empty_like(x)
    n = x.numel()
    if n == 0:
        return out
    out.fill_(0.0)
    counts = torch.empty(4, dtype=torch.int32, device=x.device)
    counts.zero_()
    block = TUNING.block if x.data_ptr() % 16 == 0 else 256
    if mode == Mode.RELU:
        binary_kernel[TUNING.grid(n)](x, y, out, n, BLOCK=block)
    return out


def pattern(x, y):
    return F.relu(y + x, inplace=bool(Mode.RELU))


def replacement_args(x, y):
    return (x, y, Mode.RELU)


def replacement_func():
    return wrapper


if __name__ == "__main__":
    import numpy
    import pytest

    x, y = torch.randn(8), torch.randn(8)
    print(torch.allclose(wrapper(x, y, Mode.RELU), torch.relu(x + y)), numpy.pi)
    pytest.main()
