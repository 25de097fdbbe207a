"""Predicted statistics of intermediates against a run of PyTorch on replayed inputs.

`cargo run -p passnet-graph --example predict -- stats GRAPHS... | python -m passnet.parity.compare_stats`
prints, for each graph and for all, how many values were compared, the median ratio of predicted to
measured spread, the share within a factor of three, and how many bounds were broken.
"""

from __future__ import annotations

import ast
import json
import math
import statistics
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch

from ..graphs.prefixes import assigned_name
from ..graphs.replay import replay_inputs
from ..graphs.statements import Op, read_model

FACTOR = 3.0
# Below this, a spread is rounding.
SMALL = 1e-9
# A bound may be missed by rounding, not by more.
SLACK = 1e-3


class Comparison:
    def __init__(self) -> None:
        self.ratios: list[float] = []
        self.mean_errors: list[float] = []
        self.broken: list[str] = []
        self.compared = 0

    def add(self, name: str, predicted: dict[str, Any], value: torch.Tensor) -> None:
        data = value.detach().to(torch.float64).flatten()
        data = data[torch.isfinite(data)]
        if data.numel() == 0:
            return
        self.compared += 1
        mean, std = float(data.mean()), float(data.std(unbiased=False))
        low, high = float(data.min()), float(data.max())
        slack = SLACK * (1 + abs(low) + abs(high))
        if predicted["min"] is not None and low < predicted["min"] - slack:
            self.broken.append(f"{name}: {low} below {predicted['min']}")
        if predicted["max"] is not None and high > predicted["max"] + slack:
            self.broken.append(f"{name}: {high} above {predicted['max']}")
        if value.is_floating_point() and std > SMALL and predicted["std"] > SMALL:
            self.ratios.append(predicted["std"] / std)
            self.mean_errors.append(abs(predicted["mean"] - mean) / std)

    def merge(self, other: Comparison) -> None:
        self.ratios += other.ratios
        self.mean_errors += other.mean_errors
        self.broken += other.broken
        self.compared += other.compared

    def __str__(self) -> str:
        if not self.ratios:
            return f"{self.compared} values, none with a spread"
        near = sum(1 / FACTOR <= ratio <= FACTOR for ratio in self.ratios) / len(self.ratios)
        return (
            f"{self.compared} values, median spread ratio {statistics.median(self.ratios):.2f}, "
            f"{near:.0%} within a factor of {FACTOR:g}, "
            f"median mean error {statistics.median(self.mean_errors):.2f} deviations, "
            f"{len(self.broken)} bounds broken"
        )


def values(folder: Path) -> Iterator[tuple[str, Any]]:
    """Run a graph on the CPU statement by statement and yield every result."""
    forward = read_model(folder / "model.py")
    scope: dict[str, Any] = {"torch": torch, "device": torch.device, "inf": math.inf}
    inputs = replay_inputs(folder)
    for argument in forward.arguments:
        value = inputs[argument.name]
        scope[argument.name] = int(value.flatten()[0]) if argument.is_symint else value
    for step in forward.steps:
        if not isinstance(step, Op):
            for target in step.targets:
                scope[target] = None if step.source is None else scope[step.source]
            continue
        text = ast.unparse(step.statement).replace("'cuda:0'", "'cpu'").replace("'cuda'", "'cpu'")
        exec(text, scope)
        variable = assigned_name(step.statement)
        if variable:
            yield step.name, scope[variable]


def compare(record: dict[str, Any]) -> Comparison:
    predicted = {entry["name"]: entry for entry in record["stats"]}
    comparison = Comparison()
    with torch.no_grad():
        for name, value in values(Path(record["path"])):
            if name in predicted and isinstance(value, torch.Tensor) and not value.is_complex():
                comparison.add(name, predicted[name], value)
    return comparison


def main() -> int:
    warnings.simplefilter("ignore")
    total = Comparison()
    for line in sys.stdin:
        record = json.loads(line)
        try:
            comparison = compare(record)
        except Exception as error:  # one graph that does not run must not stop the rest
            print(f"{record['path']}: {type(error).__name__}: {error}"[:200], flush=True)
            continue
        print(f"{record['path']}: {comparison}", flush=True)
        for broken in comparison.broken[:3]:
            print(f"    {broken}")
        total.merge(comparison)
    print(f"all: {total}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
