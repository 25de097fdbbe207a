"""What is known of each argument of a graph: size, dtype, mean and spread, small values, legal range.

Rounding follows the format: three decimals for mean and spread, six for values.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch

from .capture import SYMBOL_EXAMPLE, example_size
from .lazy_init import LazyInit

# Tensors with fewer elements are stored whole.
STORED_ELEMENTS = 64


@dataclass(frozen=True)
class Range:
    """Legal values of an integer input, both ends included."""

    low: int
    high: int


class Describer:
    """Describes arguments; knows which weights were never written and which inputs have a legal range."""

    def __init__(self, weights: LazyInit | None = None, ranges: dict[int, Range] | None = None) -> None:
        self.weights = weights
        # By the identity of the tensor's storage.
        self.ranges = ranges or {}

    def record(self, name: str, value: Any) -> str:
        """One class of `weight_meta.py`."""
        lines = [f"class Program_weight_tensor_meta_{name}:", f'    name = "{name}"']
        if isinstance(value, torch.Tensor):
            lines += self._tensor(value)
        else:
            number = SYMBOL_EXAMPLE if isinstance(value, torch.SymInt) and not value.node.has_hint() else value
            number = example_size(number) if isinstance(number, torch.SymInt) else number
            lines += _scalar(number)
        return "\n".join(lines) + "\n"

    def _tensor(self, tensor: torch.Tensor) -> list[str]:
        size = [example_size(dimension) for dimension in tensor.shape]
        lines = [f"    shape = {size}", f'    dtype = "{tensor.dtype}"', '    device = "cpu"']
        tensor = tensor.detach()
        unwritten = self.weights.sample_of(tensor) if self.weights is not None else None
        values = tensor if unwritten is None else unwritten
        mean, std = _mean_and_std(values)
        lines += [f"    mean = {mean}", f"    std = {std}"]
        if 0 < tensor.numel() < STORED_ELEMENTS and unwritten is None:
            return [*lines, f"    data = {_data(tensor)}"]
        lines.append("    data = None")
        if not tensor.is_floating_point() and not tensor.is_complex() and tensor.dtype != torch.bool:
            limits = self.ranges.get(tensor.untyped_storage()._cdata) or _observed(tensor)
            lines += [f"    min_val = {limits.low}", f"    max_val = {limits.high}"]
        elif std not in ("None", "0.000") and _is_never_negative(values):
            lines.append("    min_val = 0.0")
        return lines

    def remember(self, tensor: torch.Tensor, limits: Range) -> None:
        self.ranges[tensor.untyped_storage()._cdata] = limits


def _scalar(value: Any) -> list[str]:
    dtype = "torch.float32" if isinstance(value, float) else "torch.int64"
    return [
        "    shape = []", f'    dtype = "{dtype}"', '    device = "cpu"', "    mean = None", "    std = None",
        f"    data = [{value}]",
    ]  # fmt: skip


def _mean_and_std(tensor: torch.Tensor) -> tuple[str, str]:
    if not tensor.is_floating_point() or tensor.numel() == 0:
        return "None", "None"
    wide = tensor.double() if tensor.numel() < 1 << 16 else tensor.float()
    mean = float(wide.mean())
    # One value has no spread; the format's readers want a number.
    std = float(wide.std()) if tensor.numel() > 1 else 0.0
    return _decimal(mean, 3), _decimal(std, 3)


def _is_never_negative(values: torch.Tensor) -> bool:
    """Variances and the like: values drawn from mean and spread must not fall below zero."""
    if not values.is_floating_point() or values.numel() == 0:
        return False
    return bool((values >= 0).all())


def _observed(tensor: torch.Tensor) -> Range:
    if tensor.numel() == 0:
        return Range(0, 0)
    return Range(int(tensor.min()), int(tensor.max()))


def _data(tensor: torch.Tensor) -> str:
    values = tensor.flatten().tolist()
    if tensor.is_floating_point():
        return "[" + ", ".join(_decimal(value, 6) for value in values) + "]"
    return str(values)


def _decimal(value: float, places: int) -> str:
    if math.isfinite(value):
        return f"{value:.{places}f}"
    return f"float('{value}')"
