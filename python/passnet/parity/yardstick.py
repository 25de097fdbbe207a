"""Whether outputs agree with eager PyTorch's, element by element, and whether float64 excuses those that do not.

Simpler than the rule of `passnet-bench/src/evaluate/oracle`, which also counts elements and asks what the last bit of the
inputs decides: an element is right where it is within the tolerance of eager's, or where it is at most as far from the
float64 result as eager's is, plus the tolerance. A result that is no
number is infinitely far from a number. Where the float64 result is infinite or no number, only eager's result is right;
where eager's alone is, it counts as exact, so that it forgives nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

# rtol = 10 ** (t * first), atol = 10 ** (t * second); any other type is compared exactly.
LADDER = {
    torch.float16: (0.6, 1.0),
    torch.bfloat16: (0.3592, 1.0),
    torch.float32: (1.1772, 1.0),
    torch.float64: (1.4, 1.4),
    torch.complex64: (1.1772, 1.0),
}


def tolerance(dtype: torch.dtype, level: int) -> tuple[float, float] | None:
    """rtol and atol at a level, rounded to three digits; `None` where only equal values are right."""
    slopes = LADDER.get(dtype)
    if slopes is None:
        return None
    rtol, atol = (float(f"{10 ** (level * slope):.2e}") for slope in slopes)
    return rtol, atol


def widened(value: torch.Tensor) -> torch.Tensor:
    """The same values in the widest type of their kind."""
    return value.to(torch.complex128 if value.dtype.is_complex else torch.float64)


def excesses(expected: torch.Tensor, found: torch.Tensor, level: int) -> torch.Tensor:
    """Each element's difference as a multiple of what the level allows, infinite where one side alone is no number.

    Equal elements, infinities included, have none; NaN equals NaN.
    """
    same = (expected == found) | (expected.isnan() & found.isnan())
    limits = tolerance(expected.dtype, level)
    if limits is None:
        return torch.where(same, 0.0, float("inf"))
    rtol, atol = limits
    left, right = widened(expected), widened(found)
    excess = (left - right).abs() / (atol + rtol * right.abs())
    return torch.where(same, 0.0, excess.nan_to_num(nan=float("inf"), posinf=float("inf")))


def worst_excess(expected: torch.Tensor, found: torch.Tensor, level: int) -> float:
    """The largest difference as a multiple of what the level allows."""
    if expected.numel() == 0:
        return 0.0
    return float(excesses(expected, found, level).max())


def wrong_elements(
    truth: torch.Tensor, expected: torch.Tensor, found: torch.Tensor, level: int
) -> torch.Tensor:
    """Which elements neither agree with eager's nor are as near to the float64 result as eager's are."""
    beyond = excesses(expected, found, level) > 1.0
    limits = tolerance(expected.dtype, level)
    if limits is None:
        return beyond
    rtol, atol = limits
    exact, left, right = widened(truth), widened(expected), widened(found)
    own = (left - exact).abs()
    own = torch.where(own.isfinite(), own, 0.0)
    allowed = own + atol + rtol * exact.abs()
    # A comparison with NaN is false, so a result that is no number is near to nothing.
    near = exact.isfinite() & ((right - exact).abs() <= allowed)
    return beyond & ~near


def furthest(truth: torch.Tensor, value: torch.Tensor, level: int) -> float:
    """The largest distance from the float64 result where that is a number, as a multiple of the tolerance."""
    limits = tolerance(value.dtype, level)
    counts = truth.isfinite()
    if limits is None or not bool(counts.any()):
        return 0.0
    rtol, atol = limits
    exact = widened(truth)[counts]
    distance = (widened(value)[counts] - exact).abs() / (atol + rtol * exact.abs())
    return float(distance.nan_to_num(nan=float("inf"), posinf=float("inf")).max())


@dataclass(frozen=True)
class Judgement:
    """What the float64 result says of outputs that differ from eager's."""

    # Elements that are neither eager's nor as near to the float64 result.
    wrong: int
    elements: int
    # The largest distances from the float64 result, as multiples of the tolerance.
    found: float
    eager: float

    @property
    def is_right(self) -> bool:
        return self.wrong == 0

    def __str__(self) -> str:
        return (
            f"{self.wrong} of {self.elements} elements further from float64 than PyTorch's; "
            f"the furthest {self.found:.3g} tolerances, PyTorch's {self.eager:.3g}"
        )


def judge(
    truth: Sequence[torch.Tensor],
    expected: Sequence[torch.Tensor],
    found: Sequence[torch.Tensor],
    level: int,
) -> Judgement | None:
    """All elements of all outputs; `None` where the outputs do not correspond."""
    if not len(truth) == len(expected) == len(found):
        return None
    wrong = elements = 0
    ours = theirs = 0.0
    for exact, left, right in zip(truth, expected, found):
        if not exact.shape == left.shape == right.shape or left.dtype != right.dtype:
            return None
        if exact.dtype.is_complex != left.dtype.is_complex:
            return None
        wrong += int(wrong_elements(exact, left, right, level).sum())
        elements += left.numel()
        ours = max(ours, furthest(exact, right, level))
        theirs = max(theirs, furthest(exact, left, level))
    return Judgement(wrong, elements, ours, theirs)
