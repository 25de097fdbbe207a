"""One-op cases: small text files whose expected types PyTorch writes.

The format is described in `crates/passnet-graph/tests/ops/README.md`. People write inputs and
statements; `python -m passnet.parity golden-shapes` runs them in PyTorch, on meta and on the CPU,
and writes every `->` line.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from pathlib import Path

import torch

from ..graphs.dual_run import DualRun, Step
from ..graphs.statements import Bind, Op, number
from ..graphs.value_types import describe, same_kind, same_strides, to_text

INPUT = re.compile(
    r"(?P<name>\w+)\s*:\s*(?P<dtype>\w+)"
    r"(?:\[(?P<shape>[\d, ]*)\])?"
    r"(?:\s+stride\((?P<stride>[\d, ]*)\))?"
    r"(?:\s*=\s*(?P<value>.+))?"
)
SCALARS = {"int": int, "float": float, "bool": bool}


@dataclass(frozen=True)
class Disagreement:
    """Meta and CPU differ in more than strides; worth a reader's eye, not an error."""

    where: str
    statement: str
    detail: str


class CaseError(ValueError):
    """A case file that breaks the format; the message names file and line."""


def rewrite(path: Path) -> tuple[str, int, list[Disagreement]]:
    """The text of a case file with fresh `->` lines, the number of ops, and disagreements."""
    out: list[str] = []
    notes: list[Disagreement] = []
    count = 0
    case: Case | None = None
    for line_number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        where = f"{path.name}:{line_number}"
        text = line.strip()
        if text.startswith("->"):
            continue
        out.append(line.rstrip())
        if not text:
            case = None
        elif not text.startswith("#"):
            case = case or Case()
            try:
                result = case.feed(text)
            except (ValueError, SyntaxError) as error:
                raise CaseError(f"{where}: {error}") from error
            if result is not None:
                count += 1
                out.append(f"-> {result.text}")
                if result.note:
                    notes.append(Disagreement(where, text, result.note))
    return "\n".join(out) + "\n", count, notes


@dataclass(frozen=True)
class Result:
    text: str
    note: str


class Case:
    """One block of a case file: inputs first, then statements."""

    def __init__(self) -> None:
        self.run = DualRun()
        self.failed = ""
        self.index = 0

    def feed(self, text: str) -> Result | None:
        """Take one line; the result if it is an op, nothing for an input or an alias."""
        if INPUT.fullmatch(text.split(";")[0].strip()):
            for item in text.split(";"):
                self.add_input(item.strip())
            return None
        if self.failed:
            raise ValueError(f"the statement before failed, so its case must end: {self.failed}")
        result: Result | None = None
        for step in number(ast.parse(text).body):
            if isinstance(step, Bind):
                self.run.bind(step)
            else:
                result = self.run_op(step)
        return result

    def add_input(self, text: str) -> None:
        match = INPUT.fullmatch(text)
        if match is None:
            raise ValueError(f"not an input: `{text}`")
        name, dtype_name, value = match["name"], match["dtype"], match["value"]
        if match["shape"] is None:
            if dtype_name not in SCALARS or value is None:
                raise ValueError(f"`{dtype_name}` needs a shape, or a value for a scalar")
            self.run.bind_scalar(name, SCALARS[dtype_name](ast.literal_eval(value)))
            return
        shape = integers(match["shape"])
        stride = integers(match["stride"]) if match["stride"] is not None else contiguous(shape)
        dtype = getattr(torch, dtype_name)
        meta = torch.empty_strided(shape, stride, dtype=dtype, device="meta")
        self.run.bind_tensor(name, meta, real_tensor(shape, stride, dtype, value))

    def run_op(self, op: Op) -> Result:
        step = self.run.run(op)
        error = cpu_refusal(step) or step.error
        if error is not None:
            self.failed = first_line(error)
            note = "" if step.meta_error else "meta runs it"
            return Result("error: " + first_line(error), note)
        return judge(step)


def cpu_refusal(step: Step) -> Exception | None:
    """The CPU's error, unless it only says that this CPU build lacks a half-precision kernel."""
    missing_kernel = re.search(r"not implemented for '(Half|BFloat16)'", str(step.real_error))
    return None if missing_kernel else step.real_error


def judge(step: Step) -> Result:
    """The expected type: meta's, with the CPU's layout as an alternative where it differs."""
    kind = describe(step.meta)
    if not step.real_ran:
        return Result(to_text(kind), "")
    if step.real_error is not None:
        return Result(to_text(kind), f"only meta runs: {first_line(step.real_error)}")
    real = describe(step.real)
    if step.meta_error is not None:
        return Result(to_text(real), f"meta refuses: {first_line(step.meta_error)}")
    if not same_kind(kind, real):
        return Result(f"{to_text(kind)} or {to_text(real)}", "meta and CPU differ")
    if not same_strides(kind, real):
        return Result(f"{to_text(kind)} or {to_text(real)}", "")
    return Result(to_text(kind), "")


def first_line(error: Exception) -> str:
    line = (str(error).splitlines() or [""])[0]
    return line if len(line) <= 100 else line[:97] + "..."


def integers(text: str) -> list[int]:
    return [int(part) for part in text.split(",") if part.strip()]


def contiguous(shape: list[int]) -> list[int]:
    stride: list[int] = []
    step = 1
    for size in reversed(shape):
        stride.insert(0, step)
        step *= max(size, 1)
    return stride


def real_tensor(
    shape: list[int], stride: list[int], dtype: torch.dtype, value: str | None
) -> torch.Tensor:
    """A CPU tensor with that layout; all ones unless values are given."""
    extent = 1 + sum((size - 1) * step for size, step in zip(shape, stride))
    tensor = torch.ones((max(extent, 0),), dtype=dtype).as_strided(shape, stride)
    if value is not None:
        tensor.copy_(torch.tensor(ast.literal_eval(value), dtype=dtype).reshape(shape))
    return tensor
