"""`python -m passnet.extract.compare`: do captured graphs compute what their modules compute?

Takes the options of `python -m passnet.extract`. Each module is built with real weights and run as it is; then once
more with every graph of it replaced by the `model.py` written for it, read back from disk. A model whose outputs
differ is recorded as failed.
"""

from __future__ import annotations

import copy
import importlib.util
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch

from .capture import run_captured
from .errors import CaptureError
from .fx_text import write_graph
from .job import SEED, attempt
from .model import Model


def compare(
    build: Callable[[], Model],
    folder: Path,
    _facts: dict[str, Any],
    *,
    dynamic: bool = False,
    fullgraph: bool = False,
    stage: Callable[[str], None] = lambda _: None,
) -> dict[str, Any]:
    """Compares one model; the answer is a line of the results file."""

    def work() -> dict[str, Any]:
        stage("building")
        torch.manual_seed(SEED)
        model = build()
        module = model.module.eval()
        stage("running the module")
        args, kwargs = copy.deepcopy((model.args, model.kwargs))
        torch.manual_seed(SEED)
        # Eager attention would take a fused kernel that rounds in another order; dynamo never follows it there.
        torch.backends.mha.set_fastpath_enabled(False)
        with torch.no_grad():
            expected = _tensors(module(*args, **kwargs))
        stage("running its graphs")
        graphs = _Graphs(folder)
        torch.manual_seed(SEED)
        found = _tensors(run_captured(module, model.args, model.kwargs, graphs, dynamic=dynamic, fullgraph=fullgraph))
        worst = _largest_difference(expected, found)
        return {"graphs": graphs.count, "outputs": len(expected), "largest_difference": worst}

    return attempt(work)


class _Graphs:
    """A backend that runs the text of each graph, from a file."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.count = 0

    def __call__(self, graph_module: torch.fx.GraphModule, examples: list[Any]) -> Callable[..., Any]:
        written = write_graph(graph_module, examples)
        place = self.folder / f"subgraph_{self.count}"
        self.count += 1
        place.mkdir(parents=True)
        (place / "model.py").write_text(written.code)
        found = importlib.util.spec_from_file_location(f"captured_{self.count}", place / "model.py")
        assert found is not None and found.loader is not None
        loaded = importlib.util.module_from_spec(found)
        found.loader.exec_module(loaded)
        graph = loaded.GraphModule()
        # Constants of the graph follow its own arguments.
        constants = [argument.value for argument in written.arguments[len(examples) :]]
        return torch._dynamo.disable(lambda *arguments: graph(*arguments, *constants))


def _tensors(value: Any) -> list[torch.Tensor]:
    """All tensors of an output, in order."""
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, Mapping):
        return [tensor for element in value.values() for tensor in _tensors(element)]
    if isinstance(value, (list, tuple)):
        return [tensor for element in value for tensor in _tensors(element)]
    return []


def _largest_difference(expected: list[torch.Tensor], found: list[torch.Tensor]) -> float:
    """Raises where outputs differ by more than PyTorch's own tests allow."""
    if len(expected) != len(found) or not expected:
        raise CaptureError("different", f"{len(expected)} outputs of the module, {len(found)} of its graphs")
    worst = 0.0
    for number, (one, other) in enumerate(zip(expected, found, strict=True)):
        try:
            torch.testing.assert_close(other, one, equal_nan=True)
        except AssertionError as error:
            raise CaptureError("different", f"output {number}: {error}") from error
        if one.numel() and one.is_floating_point():
            worst = max(worst, float((one.double() - other.double()).nan_to_num().abs().max()))
    return worst


if __name__ == "__main__":
    from .__main__ import main

    sys.exit(main(job=compare))
