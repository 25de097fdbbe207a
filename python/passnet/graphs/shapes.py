"""Types of every intermediate value of a graph, from PyTorch on meta tensors.

`python -m passnet.graphs.shapes PATH...` prints one JSON line for each graph:
`{"path", "runnable", "reason", "failed_at", "nodes": [{"index", "name", "type"}]}`.
A graph that stops half way keeps the nodes before the failure.
"""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TypeVar

import torch

from .dual_run import DualRun, names_read
from .replay import TensorMeta, read_metas, replay_metas
from .statements import Argument, Op, read_model
from .value_types import Type, describe

PROCESSES = 2
# The format records values of smaller tensors only.
STAND_IN_LIMIT = 64
SMALL = 1e-5
# Beyond this many characters an error message is noise.
REASON_LIMIT = 300


@dataclass
class Node:
    index: int
    name: str
    type: Type


@dataclass
class GraphTypes:
    """What PyTorch says of one graph."""

    path: str
    runnable: bool = True
    reason: str | None = None
    failed_at: int | None = None
    nodes: list[Node] = field(default_factory=list)

    def fail(self, reason: str, at: int | None = None) -> None:
        self.runnable = False
        self.reason = reason[:REASON_LIMIT]
        self.failed_at = at

    @classmethod
    def from_json(cls, line: str) -> GraphTypes:
        record = json.loads(line)
        record["nodes"] = [Node(**node) for node in record["nodes"]]
        return cls(**record)

    def to_json(self) -> str:
        return json.dumps(asdict(self), separators=(",", ":"))


def graph_types(folder: Path) -> GraphTypes:
    """Run the graph in `folder` statement by statement on meta tensors."""
    result = GraphTypes(str(folder))
    try:
        forward = read_model(folder / "model.py")
        metas = {meta.name: meta for meta in read_metas(folder / "weight_meta.py")}
    except (OSError, ValueError, KeyError, AttributeError, SyntaxError, RecursionError) as error:
        result.fail(f"unreadable: {error}")
        return result
    with DualRun() as run:
        invented: set[str] = set()
        for argument in forward.arguments:
            meta = metas.get(argument.name)
            if meta is None:
                result.fail(f"no metadata for argument `{argument.name}`")
                return result
            bind_argument(run, argument, meta)
            if meta.data is None:
                invented.add(argument.name)
        for step in forward.steps:
            if not isinstance(step, Op):
                run.bind(step)
                if step.source in invented:
                    invented.update(step.targets)
                continue
            outcome = run.run(step)
            if outcome.error is not None:
                line = " ".join(str(outcome.error).split())
                result.fail(f"{type(outcome.error).__name__}: {line}", step.index)
                return result
            kind = describe(outcome.meta)
            if not invented.isdisjoint(names_read(step.statement)):
                invented.add(step.name)
                if kind.get("scalar") == "float":
                    kind["value"] = None  # a stand-in says nothing about the number
            result.nodes.append(Node(step.index, step.name, kind))
    return result


def bind_argument(run: DualRun, argument: Argument, meta: TensorMeta) -> None:
    """Give an argument its shape, and its values where the metadata records them."""
    if argument.is_symint and meta.data:
        run.bind_scalar(argument.name, int(meta.data[0]))
        return
    shape_only = torch.empty(meta.shape, dtype=meta.dtype, device="meta")
    run.bind_tensor(argument.name, shape_only, known_values(meta, shape_only.numel()))


def known_values(meta: TensorMeta, elements: int) -> torch.Tensor | None:
    """Recorded values, or for a few floats a stand-in drawn as any replay draws them.

    Floats are read back as rates, epsilons and fill values, which decide no shape; integers may,
    so those are never invented.
    """
    if meta.data is None and not (meta.dtype.is_floating_point and elements <= STAND_IN_LIMIT):
        return None
    try:
        values = replay_metas([meta])[meta.name]
    except (ValueError, TypeError, RuntimeError):
        return None  # contradictory data: the shape alone still serves
    if meta.data is None:
        # Means are recorded with three decimals: an epsilon reads 0.000, which norms refuse.
        values[values == 0] = SMALL
    return values


def find_graphs(paths: Iterable[Path]) -> list[Path]:
    """The graph folders named by paths: a folder, its `model.py`, or a tree of them."""
    found: set[Path] = set()
    for path in paths:
        if path.name == "model.py":
            found.add(path.parent)
        elif (path / "model.py").is_file():
            found.add(path)
        else:
            found.update(model.parent for model in path.rglob("model.py"))
    return sorted(found)


R = TypeVar("R")


def in_processes(
    work: Callable[[Path], R], folders: Sequence[Path], crashed: Callable[[Path], R]
) -> Iterator[R]:
    """`work` over all folders on two processes, in order.

    A graph that kills its process takes others of the pool with it; each of those is tried again
    in a process of its own, and only the guilty one is answered by `crashed`.
    """
    with ProcessPoolExecutor(PROCESSES) as pool:
        futures: list[Future[R]] = []
        for folder in folders:
            try:
                futures.append(pool.submit(work, folder))
            except BrokenProcessPool:
                break
        for position, folder in enumerate(folders):
            try:
                if position >= len(futures):
                    raise BrokenProcessPool
                yield futures[position].result()
            except BrokenProcessPool:
                yield alone(work, folder, crashed)


def alone(work: Callable[[Path], R], folder: Path, crashed: Callable[[Path], R]) -> R:
    with ProcessPoolExecutor(1) as pool:
        try:
            return pool.submit(work, folder).result()
        except BrokenProcessPool:
            return crashed(folder)


def quiet_graph_types(folder: Path) -> GraphTypes:
    """`graph_types` for worker processes: one thread each, no warnings, no exception escapes."""
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    try:
        return graph_types(folder)
    except Exception as error:  # one bad graph must not stop the rest
        result = GraphTypes(str(folder))
        result.fail(f"internal error: {type(error).__name__}: {error}")
        return result


def crashed_graph(folder: Path) -> GraphTypes:
    result = GraphTypes(str(folder))
    result.fail("PyTorch crashed")
    return result


def all_graph_types(folders: Sequence[Path]) -> Iterator[GraphTypes]:
    return in_processes(quiet_graph_types, folders, crashed_graph)


def main(arguments: Sequence[str]) -> int:
    folders = find_graphs(Path(argument) for argument in arguments)
    if not folders:
        print("usage: python -m passnet.graphs.shapes PATH...", file=sys.stderr)
        return 2
    for result in all_graph_types(folders):
        print(result.to_json(), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
