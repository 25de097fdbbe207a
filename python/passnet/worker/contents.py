"""What timed calls are called with, and how what they give is compared.

A content is a staged draw whose tensors are rolled, each by a number of places that the other side says, or values that come
with the request. Every call gets its content in memory of its own. What the candidate gives is kept until eager has been
called on the same content: when the candidate runs, what it must give does not exist yet.
"""

import secrets
from typing import Any

import torch

from passnet.worker.tensors import same_bits

LOWEST, HIGHEST = -10, 5


def rolled(inputs: list[Any], by: list[int]) -> list[Any]:
    """Fresh tensors with the same elements, moved on in row-major order."""
    return [
        torch.roll(value, places) if isinstance(value, torch.Tensor) else value
        for value, places in zip(inputs, by, strict=True)
    ]


def random_rolls(inputs: list[Any]) -> list[int]:
    return [secrets.randbelow(max(value.numel(), 1)) if isinstance(value, torch.Tensor) else 0 for value in inputs]


def first_changed(inputs: list[Any], originals: list[Any]) -> int | None:
    """The first tensor that is not as it was made."""
    pairs = enumerate(zip(inputs, originals, strict=True))
    return next((i for i, (one, two) in pairs if isinstance(one, torch.Tensor) and not same_bits(one, two)), None)


class Ladder:
    """The tolerances of all levels, as the other side has them."""

    def __init__(self, table: dict[str, list[list[float]]], dtypes: dict[str, torch.dtype]) -> None:
        self.table = {dtypes[name]: levels for name, levels in table.items()}

    def right_from(self, level: int, expected: list[torch.Tensor], actual: list[torch.Tensor]) -> int | None:
        """The strictest level, from `level` on, at which all outputs are right; `None` where none is."""
        if len(expected) != len(actual):
            return None
        for one, two in zip(expected, actual, strict=True):
            found = self.of_output(level, one, two)
            if found is None:
                return None
            level = found
        return level

    def of_output(self, level: int, expected: torch.Tensor, actual: torch.Tensor) -> int | None:
        if expected.dtype != actual.dtype or expected.shape != actual.shape:
            return None
        if same_bits(expected, actual):
            return level
        tolerances = self.table.get(expected.dtype)
        if tolerances is None:
            return level if torch.equal(expected, actual) else None
        wide = torch.float64 if expected.dtype == torch.float64 else torch.float32
        expected, actual = expected.to(wide), actual.to(wide)
        # Equal infinities have no difference, and NaN is right where NaN is expected.
        same = (expected == actual) | (expected.isnan() & actual.isnan())
        difference = torch.where(same, 0.0, (expected - actual).abs())
        size = torch.where(expected.isfinite(), expected.abs(), 0.0)
        for t in range(level, HIGHEST + 1):
            rtol, atol = tolerances[t - LOWEST]
            if bool((difference <= atol + rtol * size).all()):
                return t
        return None
