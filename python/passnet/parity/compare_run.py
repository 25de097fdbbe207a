"""Runs graphs in PyTorch on the CPU and compares their outputs with the native engine's.

The binary runs a batch of graphs and dumps inputs and outputs. PyTorch draws its own inputs, which
must equal the dumped ones, runs the same text, and the outputs are compared at a level of
the tolerance ladder. Where they differ, both are held against the same graph in float64, element by element: rounding
that is no worse than PyTorch's own is told apart from a mistake (`yardstick.py`).
"""

from __future__ import annotations

import ast
import json
import subprocess
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import torch

from . import yardstick
from .compare_print import elements_of, first_words
from ..graphs.dual_run import DeviceMapper
from ..graphs.replay import DEFAULT_SEED, read_metas, replay_metas
from ..graphs.shapes import find_graphs, in_processes
from ..graphs.statements import parse_model
from .yardstick import excesses, widened, worst_excess

BATCH = 48
TYPES = {
    "BOOL": torch.bool,
    "U8": torch.uint8,
    "I8": torch.int8,
    "I16": torch.int16,
    "I32": torch.int32,
    "I64": torch.int64,
    "F16": torch.float16,
    "BF16": torch.bfloat16,
    "F32": torch.float32,
    "F64": torch.float64,
    "C64": torch.complex64,
}


@dataclass(frozen=True)
class Options:
    level: int = -5
    seed: int = DEFAULT_SEED
    dtype: str | None = None
    max_elements: int = 100_000_000
    # Take this many graphs, spread over all that are found.
    limit: int | None = None


@dataclass
class Outcome:
    """`equal`, `as accurate`, `different`, `not run`, `too large`, `both fail` or `skipped`.

    `not run`: PyTorch runs the graph, the native engine does not. `skipped`: PyTorch does not.
    """

    path: str
    status: str
    detail: str = ""
    tensors: int = 0
    # The largest excess over the tolerance, as a multiple of it.
    worst: float = 0.0
    # The same between PyTorch's kernels and its own others (oneDNN switched off); asked of outputs that differ.
    own: float | None = None
    ops: tuple[str, ...] = ()


@dataclass
class RunReport:
    outcomes: list[Outcome] = field(default_factory=list)

    def count(self, status: str) -> int:
        return sum(outcome.status == status for outcome in self.outcomes)

    @property
    def unsteady(self) -> int:
        """Graphs whose outputs differ, and on which PyTorch's kernels differ among themselves."""
        return sum((outcome.own or 0.0) > 1.0 for outcome in self.outcomes)

    @property
    def failed(self) -> bool:
        return any(outcome.status in ("different", "not run") for outcome in self.outcomes)


def compare_runs(binary: Path, paths: Sequence[Path], options: Options) -> RunReport:
    """Compare all graphs, a batch at a time, so that dumps never fill the disk."""
    report = RunReport()
    folders = spread(find_graphs(paths), options.limit)
    for start in range(0, len(folders), BATCH):
        batch = folders[start : start + BATCH]
        small = [folder for folder in batch if input_elements(folder) <= options.max_elements]
        with tempfile.TemporaryDirectory() as scratch:
            native = run_native(binary, small, Path(scratch), options)
            work = partial(compare_one, native, options)
            for outcome in in_processes(work, batch, crashed):
                report.outcomes.append(outcome)
                if outcome.status in ("different", "not run"):
                    print(f"{outcome.path}: {outcome.status}: {outcome.detail}", file=sys.stderr)
        print(f"{min(start + BATCH, len(folders))} of {len(folders)} graphs", file=sys.stderr)
    return report


def spread(items: Sequence[Path], count: int | None) -> Sequence[Path]:
    """Evenly many from the whole list, always the same."""
    if count is None or len(items) <= count:
        return items
    return [items[index * len(items) // count] for index in range(count)]


def crashed(folder: Path) -> Outcome:
    return Outcome(str(folder), "skipped", "PyTorch crashed or ran out of memory")


def input_elements(folder: Path) -> int:
    try:
        metas = read_metas(folder / "weight_meta.py")
    except (SyntaxError, ValueError, KeyError, OSError):
        return 0
    return sum(elements_of(meta.shape) for meta in metas)


def run_native(
    binary: Path, folders: Sequence[Path], scratch: Path, options: Options
) -> dict[str, dict[str, Any]]:
    """What the binary says of each graph, by path."""
    if not folders:
        return {}
    command = [str(binary), "graph", "run", "--json", "--seed", str(options.seed)]
    command += ["--dump-dir", str(scratch), *map(str, folders)]
    if options.dtype is not None:
        command += ["--dtype", options.dtype]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    if ran.returncode not in (0, 1):
        raise OSError(f"{binary} failed: {ran.stderr[-400:]}")
    records = map(json.loads, ran.stdout.splitlines())
    return {record["path"]: record for record in records}


def compare_one(native: dict[str, dict[str, Any]], options: Options, folder: Path) -> Outcome:
    """One graph: run it in PyTorch on inputs of its own, compare inputs and outputs."""
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    path = str(folder)
    record = native.get(path)
    if record is None:
        return Outcome(path, "too large", "not tried: its inputs are too large")
    source = (folder / "model.py").read_text(encoding="utf-8")
    ops = operations(source)
    try:
        inputs = draw_inputs(folder, source, options)
        expected = run_graph(source, inputs, options.seed)
    except Exception as error:  # PyTorch does not run it here
        status = "skipped" if record["ok"] else "both fail"
        return Outcome(path, status, f"{type(error).__name__}: {first_words(error)}", ops=ops)
    if not record["ok"]:
        error = record["error"]
        detail = f"{error['kind']}: {error.get('operation', '')}: {error['message']}"
        return Outcome(path, "not run", detail, ops=ops)
    dumped = read_safetensors(Path(record["dump"]))
    for name, value in inputs.items():
        # Equal as numbers: the sign of a zero is left out.
        if isinstance(value, torch.Tensor) and worst_excess(value, dumped[f"input.{name}"], -10) > 0:
            return Outcome(path, "different", f"input {name} is drawn differently", ops=ops)
    found = [dumped[f"output.{index}"] for index in range(len(record["outputs"]))]
    return judge(path, source, inputs, expected, found, ops, options)


def judge(
    path: str,
    source: str,
    inputs: dict[str, Any],
    expected: list[torch.Tensor],
    found: list[torch.Tensor],
    ops: tuple[str, ...],
    options: Options,
) -> Outcome:
    """Whether the outputs agree, and if not, whether float64 finds every element as near as PyTorch's."""
    outcome = Outcome(path, "equal", tensors=len(expected), ops=ops)
    if len(found) != len(expected):
        return replace(outcome, status="different", detail=f"{len(found)} outputs")
    for index, (left, right) in enumerate(zip(expected, found)):
        if left.shape != right.shape or left.dtype != right.dtype:
            detail = f"output {index}: {describe(right)} instead of {describe(left)}"
            return replace(outcome, status="different", detail=detail)
        excess = worst_excess(left, right, options.level)
        if excess > outcome.worst:
            outcome.worst = excess
            outcome.detail = f"output {index}: {difference(left, right, options.level)}"
    if outcome.worst <= 1.0:
        return replace(outcome, detail="")
    outcome.own = own_excess(source, inputs, expected, options)
    truth = float64_outputs(source, inputs, options.seed)
    judgement = None if truth is None else yardstick.judge(truth, expected, found, options.level)
    if judgement is None:
        return replace(outcome, status="different", detail=f"{outcome.detail}; float64 does not tell")
    status = "as accurate" if judgement.is_right else "different"
    return replace(outcome, status=status, detail=f"{outcome.detail}; {judgement}")


def own_excess(
    source: str, inputs: dict[str, Any], expected: list[torch.Tensor], options: Options
) -> float | None:
    """How far PyTorch's other kernels, which sum in another order, are from its usual ones."""
    try:
        with torch.backends.mkldnn.flags(enabled=False):
            others = run_graph(source, inputs, options.seed)
    except Exception:  # then there is nothing to compare with
        return None
    return max(worst_excess(a, b, options.level) for a, b in zip(expected, others))


def difference(expected: torch.Tensor, found: torch.Tensor, level: int) -> str:
    """The worst element."""
    gap = excesses(expected, found, level).flatten()
    at = int(gap.argmax())
    left, right = expected.flatten()[at].item(), found.flatten()[at].item()
    return f"{right} instead of {left} at {at} of {gap.numel()}"


def describe(tensor: torch.Tensor) -> str:
    return f"{str(tensor.dtype).removeprefix('torch.')}{list(tensor.shape)}"


def float64_outputs(source: str, inputs: dict[str, Any], seed: int) -> list[torch.Tensor] | None:
    """What the graph computes in float64; `None` where PyTorch does not run it so."""
    default = torch.get_default_dtype()
    try:
        torch.set_default_dtype(torch.float64)
        wide = {
            name: widened(value)
            if isinstance(value, torch.Tensor) and (value.is_floating_point() or value.is_complex())
            else value
            for name, value in inputs.items()
        }
        return run_graph(source, wide, seed, Widener())
    except Exception:  # then nothing tells which is right
        return None
    finally:
        torch.set_default_dtype(default)


class Widener(ast.NodeTransformer):
    """Makes a graph compute in float64 wherever it names a float type."""

    FLOATS = frozenset({"float32", "float16", "bfloat16", "float", "half"})

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        self.generic_visit(node)
        is_torch = isinstance(node.value, ast.Name) and node.value.id == "torch"
        if is_torch and node.attr in self.FLOATS:
            node.attr = "float64"
        return node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        if isinstance(node.func, ast.Attribute) and not node.args and not node.keywords:
            if node.func.attr in ("float", "half", "bfloat16"):
                node.func.attr = "double"
        return self.generic_visit(node)


def draw_inputs(folder: Path, source: str, options: Options) -> dict[str, Any]:
    """Inputs by the reference's rules; a `torch.SymInt` argument becomes a Python int."""
    metas = read_metas(folder / "input_meta.py") + read_metas(folder / "weight_meta.py")
    if options.dtype is not None:
        dtype = getattr(torch, options.dtype)
        metas = [replace(m, dtype=dtype) if m.dtype is torch.float32 else m for m in metas]
    drawn = replay_metas(metas, options.seed)
    return {
        argument.name: int(drawn[argument.name].item())
        if argument.is_symint
        else drawn[argument.name]
        for argument in parse_model(source).arguments
    }


def run_graph(
    source: str, inputs: dict[str, Any], seed: int, rewrite: ast.NodeTransformer | None = None
) -> list[torch.Tensor]:
    """All outputs in order, numbers as 0-d tensors."""
    forward = load_graph(source, rewrite)
    own = {k: v.clone() if isinstance(v, torch.Tensor) else v for k, v in inputs.items()}
    torch.manual_seed(seed)
    with torch.no_grad():
        return list(leaves(forward(**own)))


def load_graph(source: str, rewrite: ast.NodeTransformer | None = None) -> Callable[..., Any]:
    """The `forward` of a graph, on the CPU."""
    tree = DeviceMapper().visit(ast.parse(source))
    if rewrite is not None:
        tree = rewrite.visit(tree)
    namespace: dict[str, Any] = {"_device": torch.device("cpu")}
    exec(compile(ast.fix_missing_locations(tree), "<model>", "exec"), namespace)
    forward: Callable[..., Any] = namespace["GraphModule"]().forward
    return forward


def leaves(value: Any) -> Iterator[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, bool):
        yield torch.tensor(value)
    elif isinstance(value, int):
        yield torch.tensor(value, dtype=torch.int64)
    elif isinstance(value, float):
        yield torch.tensor(value, dtype=torch.float64)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from leaves(item)


def read_safetensors(path: Path) -> dict[str, torch.Tensor]:
    """The tensors of a file, copied."""
    data = path.read_bytes()
    length = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + length])
    tensors = {}
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        begin, end = (8 + length + offset for offset in entry["data_offsets"])
        dtype = TYPES[entry["dtype"]]
        raw = torch.frombuffer(bytearray(data[begin:end]), dtype=dtype) if end > begin else None
        empty = torch.empty(0, dtype=dtype)
        tensors[name] = (empty if raw is None else raw).reshape(entry["shape"])
    return tensors


def operations(source: str) -> tuple[str, ...]:
    """Names of the operations a graph calls, for counting."""
    names = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            names.add(node.func.attr)
        elif isinstance(node, ast.BinOp):
            names.add(type(node.op).__name__.lower())
    return tuple(sorted(names))


def to_json(report: RunReport) -> dict[str, Any]:
    return {
        "graphs": len(report.outcomes),
        "equal": report.count("equal"),
        "as_accurate": report.count("as accurate"),
        "unsteady_in_pytorch": report.unsteady,
        "different": report.count("different"),
        "not_run": report.count("not run"),
        "both_fail": report.count("both fail"),
        "skipped": report.count("skipped"),
        "too_large": report.count("too large"),
        "tensors": sum(outcome.tensors for outcome in report.outcomes),
        "problems": [vars(o) for o in report.outcomes if o.status != "equal"],
    }


def to_table(report: RunReport) -> str:
    lines = [
        f"graphs tried                {len(report.outcomes)}",
        f"  equal at the level        {report.count('equal')}",
        f"  as near to float64        {report.count('as accurate')}"
        f"  (of these PyTorch without oneDNN is beyond the level too: {report.unsteady})",
        f"  different                 {report.count('different')}",
        f"  not run natively          {report.count('not run')}",
        f"  both refuse               {report.count('both fail')}",
        f"  PyTorch fails             {report.count('skipped')}",
        f"  too large to try          {report.count('too large')}",
    ]
    suspects: Counter[str] = Counter()
    fine = {op for o in report.outcomes if o.status == "equal" for op in o.ops}
    for outcome in report.outcomes:
        if outcome.status == "different":
            suspects.update(set(outcome.ops) - fine or outcome.ops)
    if suspects:
        lines.append("operations of graphs that differ, those of no equal graph first:")
        ranked = sorted(suspects.items(), key=lambda item: (item[0] in fine, -item[1]))
        lines += [f"  {count:5}  {name}" for name, count in ranked[:12]]
    worst = sorted(report.outcomes, key=lambda o: -o.worst)[:10]
    if worst and worst[0].worst > 1.0:
        lines.append("worst, as multiples of the tolerance:")
        lines += [f"  {o.worst:10.3g}  {o.status}  {o.path}: {o.detail}" for o in worst if o.worst > 1]
    return "\n".join(lines)
