"""Runs original and printed graphs in PyTorch on the CPU and compares their outputs bit by bit."""

from __future__ import annotations

import ast
import subprocess
import sys
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import torch

from ..graphs.dual_run import DeviceMapper, tensors_in
from ..graphs.replay import read_metas, replay_inputs
from ..graphs.shapes import find_graphs, in_processes
from ..graphs.statements import parse_model

RUN_SEED = 1024
BATCH = 16
Inputs = dict[str, Any]


@dataclass
class Outcome:
    """`equal`, `different`, `not printed`, `too large`, or `skipped`: the original fails here."""

    path: str
    status: str
    detail: str = ""
    tensors: int = 0


@dataclass
class PrintReport:
    outcomes: list[Outcome] = field(default_factory=list)

    def count(self, status: str) -> int:
        return sum(outcome.status == status for outcome in self.outcomes)

    @property
    def failed(self) -> bool:
        return any(outcome.status in ("different", "not printed") for outcome in self.outcomes)


def compare_prints(
    binary: Path, paths: Sequence[Path], limit: int | None, max_elements: int
) -> PrintReport:
    """Compare graphs in path order until `limit` of them have run on both sides."""
    report = PrintReport()
    ran = 0
    work = partial(compare_one, binary, max_elements)
    folders = find_graphs(paths)
    # Small batches, so that a limit stops the work and not only the report.
    for start in range(0, len(folders), BATCH):
        for outcome in in_processes(work, folders[start : start + BATCH], crashed):
            report.outcomes.append(outcome)
            ran += outcome.status in ("equal", "different")
            if outcome.status != "equal":
                print(f"{outcome.path}: {outcome.status}: {outcome.detail}", file=sys.stderr)
        if limit is not None and ran >= limit:
            break
    return report


def crashed(folder: Path) -> Outcome:
    return Outcome(str(folder), "skipped", "PyTorch crashed or ran out of memory")


def compare_one(binary: Path, max_elements: int, folder: Path) -> Outcome:
    """One graph: print it, run both texts on the same inputs, compare outputs and inputs."""
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    path = str(folder)
    try:
        original = (folder / "model.py").read_text(encoding="utf-8")
        elements = sum(elements_of(meta.shape) for meta in read_metas(folder / "weight_meta.py"))
        if elements > max_elements:
            return Outcome(path, "too large", f"{elements} input elements")
        inputs = graph_inputs(folder, original)
        expected = run_graph(original, inputs)
    except Exception as error:  # the original does not run here
        return Outcome(path, "skipped", f"{type(error).__name__}: {first_words(error)}")
    command = [str(binary), "graph", "show", path, "--print"]
    printed = subprocess.run(command, capture_output=True, text=True, check=False)
    if printed.returncode != 0:
        return Outcome(path, "not printed", printed.stderr[-300:])
    try:
        found = run_graph(printed.stdout, inputs)
    except Exception as error:  # the printed text does not run
        return Outcome(path, "different", f"{type(error).__name__}: {first_words(error)}")
    if len(found) != len(expected):
        return Outcome(path, "different", f"{len(found)} tensors instead of {len(expected)}")
    for index, (left, right) in enumerate(zip(expected, found)):
        if not same_bits(left, right):
            return Outcome(path, "different", f"tensor {index} of {len(expected)}")
    return Outcome(path, "equal", tensors=len(expected))


def graph_inputs(folder: Path, source: str) -> Inputs:
    """Replayed inputs; a `torch.SymInt` argument becomes a Python int."""
    replayed = replay_inputs(folder)
    return {
        argument.name: int(replayed[argument.name].item())
        if argument.is_symint
        else replayed[argument.name]
        for argument in parse_model(source).arguments
    }


def run_graph(source: str, inputs: Inputs) -> list[torch.Tensor]:
    """All output tensors, then all inputs as the graph left them."""
    tree = ast.fix_missing_locations(DeviceMapper().visit(ast.parse(source)))
    namespace: dict[str, Any] = {"_device": torch.device("cpu")}
    exec(compile(tree, "<model>", "exec"), namespace)
    own = {k: v.clone() if isinstance(v, torch.Tensor) else v for k, v in inputs.items()}
    torch.manual_seed(RUN_SEED)
    with torch.no_grad():
        outputs = namespace["GraphModule"]().forward(**own)
    scalars = [torch.tensor(v) for v in outputs if isinstance(v, (bool, int, float))]
    return [*tensors_in(outputs), *scalars, *tensors_in(list(own.values()))]


def same_bits(left: torch.Tensor, right: torch.Tensor) -> bool:
    """Equal shape, dtype and bits; a NaN equals a NaN."""
    if left.shape != right.shape or left.dtype != right.dtype:
        return False
    if left.dtype.is_complex:
        left, right = torch.view_as_real(left), torch.view_as_real(right)
    if not left.dtype.is_floating_point:
        return torch.equal(left, right)
    word = {8: torch.int64, 4: torch.int32, 2: torch.int16, 1: torch.int8}[left.element_size()]
    left, right = left.contiguous(), right.contiguous()
    same = left.view(word) == right.view(word)
    return bool((same | (left.isnan() & right.isnan())).all())


def elements_of(shape: list[int]) -> int:
    count = 1
    for size in shape:
        count *= size
    return count


def first_words(error: Exception) -> str:
    return " ".join(str(error).split())[:200]


def to_json(report: PrintReport) -> dict[str, Any]:
    return {
        "graphs": len(report.outcomes),
        "equal": report.count("equal"),
        "different": report.count("different"),
        "not_printed": report.count("not printed"),
        "too_large": report.count("too large"),
        "skipped": report.count("skipped"),
        "tensors": sum(outcome.tensors for outcome in report.outcomes),
        "problems": [vars(o) for o in report.outcomes if o.status != "equal"],
    }


def to_table(report: PrintReport) -> str:
    tensors = sum(outcome.tensors for outcome in report.outcomes)
    return "\n".join(
        [
            f"graphs tried                {len(report.outcomes)}",
            f"  bit-equal                 {report.count('equal')}  ({tensors} tensors)",
            f"  different                 {report.count('different')}",
            f"  not printed               {report.count('not printed')}",
            f"  too large to try          {report.count('too large')}",
            f"  the original fails        {report.count('skipped')}",
        ]
    )
