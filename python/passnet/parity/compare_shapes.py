"""Compares the types PassNet infers with those PyTorch gives on meta tensors."""

from __future__ import annotations

import ast
import json
import math
import subprocess
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..graphs.shapes import GraphTypes, all_graph_types, find_graphs
from ..graphs.statements import read_model
from ..graphs.value_types import Type, same_kind, same_strides, to_text

EXAMPLES = 3


class BinaryError(RuntimeError):
    """The PassNet binary did not answer as documented."""


@dataclass
class Example:
    """One node where the two sides differ."""

    path: str
    index: int
    statement: str
    torch: str
    passnet: str


@dataclass
class ShapeReport:
    graphs: int = 0
    runnable: int = 0
    not_runnable: dict[str, str] = field(default_factory=dict)
    unread: dict[str, str] = field(default_factory=dict)
    nodes: int = 0
    equal: int = 0
    unknown: int = 0
    equal_strides: int = 0
    differing_graphs: int = 0
    kinds: dict[str, list[Example]] = field(default_factory=lambda: defaultdict(list))
    strides: dict[str, list[Example]] = field(default_factory=lambda: defaultdict(list))

    @property
    def failed(self) -> bool:
        return self.equal < self.nodes or bool(self.unread)


def compare_shapes(
    binary: Path, paths: Sequence[Path], recorded: Path | None = None
) -> ShapeReport:
    """Run both sides over all graphs under `paths`.

    `recorded` names the output of an earlier `python -m passnet.graphs.shapes`, which spares PyTorch's
    share of the time while inference is being worked on.
    """
    folders = find_graphs(paths)
    torch_types = all_graph_types(folders) if recorded is None else read_types(recorded, folders)
    inferred = inferred_types(binary, paths)
    report = ShapeReport()
    for types in torch_types:
        report.graphs += 1
        report.runnable += types.runnable
        if not types.runnable:
            report.not_runnable[types.path] = types.reason or ""
        answer = inferred.get(Path(types.path).resolve())
        if answer is None:
            report.unread[types.path] = "no answer from the binary"
        elif answer.get("nodes") is None:
            report.unread[types.path] = json.dumps(answer.get("errors") or answer)[:200]
        else:
            compare_graph(report, types, answer["nodes"])
    return report


def read_types(recorded: Path, folders: Sequence[Path]) -> Iterator[GraphTypes]:
    """The graphs among `folders` in a file of recorded types."""
    wanted = {folder.resolve() for folder in folders}
    with recorded.open(encoding="utf-8") as lines:
        for line in lines:
            types = GraphTypes.from_json(line)
            if Path(types.path).resolve() in wanted:
                yield types


def inferred_types(binary: Path, paths: Sequence[Path]) -> dict[Path, dict[str, Any]]:
    """`passnet graph show --infer --json`, by resolved graph folder."""
    command = [str(binary), "graph", "show", *map(str, paths), "--infer", "--json"]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    if run.returncode not in (0, 1):
        raise BinaryError(f"`{' '.join(command)}` exited {run.returncode}: {run.stderr[-500:]}")
    answers: dict[Path, dict[str, Any]] = {}
    for line in run.stdout.splitlines():
        try:
            answer = json.loads(line)
            path = Path(answer["path"])
        except (ValueError, KeyError, TypeError) as error:
            raise BinaryError(f"not a graph record: {line[:200]}") from error
        answers[(path.parent if path.name == "model.py" else path).resolve()] = answer
    return answers


def compare_graph(report: ShapeReport, types: GraphTypes, nodes: list[dict[str, Any]]) -> None:
    """Compare node by node; a node the binary lacks counts as a difference."""
    by_index = {node["index"]: node for node in nodes}
    source: list[ast.stmt] | None = None
    differs = False
    for node in types.nodes:
        report.nodes += 1
        answer = by_index.get(node.index, {"op": "missing", "type": {"unknown": "no such node"}})
        kind: Type = answer.get("type") or {"unknown": "no type"}
        same = equal_types(node.type, kind)
        strides = same and same_strides(node.type, kind)
        report.equal += same
        report.equal_strides += strides
        report.unknown += "unknown" in kind
        differs = differs or not same
        if same and strides:
            continue
        group = (report.strides if same else report.kinds)[answer.get("op", "?")]
        if source is None:
            source = [op.statement for op in read_model(Path(types.path) / "model.py").ops]
        statement = ast.unparse(source[node.index])
        group.append(Example(types.path, node.index, statement, to_text(node.type), to_text(kind)))
    report.differing_graphs += differs


def equal_types(torch_type: Type, passnet_type: Type) -> bool:
    """`same_kind`, where a scalar whose value inference cannot know still counts as equal."""
    if "scalar" in torch_type and "scalar" in passnet_type:
        if torch_type["scalar"] != passnet_type["scalar"]:
            return False
        left, right = torch_type["value"], passnet_type.get("value")
        if left is None or right is None:
            return True
        if isinstance(left, float) and isinstance(right, (int, float)):
            return math.isclose(left, right, rel_tol=1e-12)
        return bool(left == right)
    if "other" in torch_type:
        return "other" in passnet_type
    if "list" in torch_type and "list" in passnet_type:
        pairs = list(zip(torch_type["list"], passnet_type["list"]))
        same_length = len(torch_type["list"]) == len(passnet_type["list"])
        return same_length and all(equal_types(a, b) for a, b in pairs)
    return same_kind(torch_type, passnet_type)


def to_json(report: ShapeReport) -> dict[str, Any]:
    def groups(by_op: dict[str, list[Example]]) -> list[dict[str, Any]]:
        return [
            {"op": op, "count": len(all_), "examples": [vars(e) for e in all_[:EXAMPLES]]}
            for op, all_ in by_frequency(by_op)
        ]

    return {
        "graphs": report.graphs,
        "runnable_on_meta": report.runnable,
        "not_runnable": report.not_runnable,
        "unread": report.unread,
        "nodes": report.nodes,
        "equal": report.equal,
        "unknown": report.unknown,
        "equal_strides": report.equal_strides,
        "differing_graphs": report.differing_graphs,
        "mismatches": groups(report.kinds),
        "stride_mismatches": groups(report.strides),
    }


def to_table(report: ShapeReport) -> str:
    lines = [
        f"graphs                      {report.graphs}",
        f"  PyTorch runs on meta      {report.runnable}",
        f"  not read by the binary    {len(report.unread)}",
        f"  with a difference         {report.differing_graphs}",
        f"nodes compared              {report.nodes}",
        f"  equal shape and dtype     {report.equal}  ({share(report.equal, report.nodes)})",
        f"  unknown to PassNet        {report.unknown}",
        f"  equal strides as well     {report.equal_strides}"
        f"  ({share(report.equal_strides, report.nodes)})",
    ]
    for title, reasons in (
        ("not runnable", report.not_runnable),
        ("not read", report.unread),
    ):
        lines += [f"{title}: {path}: {reason}" for path, reason in reasons.items()]
    for title, by_op in (
        ("shape or dtype differs", report.kinds),
        ("only strides differ", report.strides),
    ):
        for op, examples in by_frequency(by_op):
            lines.append(f"{title}: {op} ({len(examples)} nodes)")
            for example in examples[:EXAMPLES]:
                lines += [
                    f"  {example.path} op {example.index}: {example.statement[:160]}",
                    f"    PyTorch  {example.torch}",
                    f"    PassNet  {example.passnet}",
                ]
    return "\n".join(lines)


def by_frequency(by_op: dict[str, list[Example]]) -> list[tuple[str, list[Example]]]:
    return sorted(by_op.items(), key=lambda item: (-len(item[1]), item[0]))


def share(part: int, whole: int) -> str:
    return f"{100 * part / whole:.2f} %" if whole else "-"
