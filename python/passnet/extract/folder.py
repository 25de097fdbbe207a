"""A captured graph as a folder of the format. `graph_net.json` is written last: it says that the rest is there."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from .capture import Capture, Captured, example_size
from .fx_text import Argument
from .metadata import Describer

MARKER = "graph_net.json"


def write_capture(folder: Path, captured: Capture, describer: Describer, facts: dict[str, Any]) -> list[Path]:
    """One graph goes into `folder` itself, several into `subgraph_0`, `subgraph_1`, … below it."""
    several = len(captured.graphs) > 1
    folders = []
    for number, graph in enumerate(captured.graphs):
        place = folder / f"subgraph_{number}" if several else folder
        write_graph_folder(place, graph, describer, facts)
        folders.append(place)
    return folders


def write_graph_folder(folder: Path, graph: Captured, describer: Describer, facts: dict[str, Any]) -> None:
    """Refuses a folder that already holds a graph."""
    folder.mkdir(parents=True, exist_ok=True)
    if (folder / MARKER).exists():
        raise FileExistsError(f"{folder} already holds a graph")
    code = graph.written.code
    metas = [describer.record(argument.name, argument.value) for argument in graph.arguments]
    (folder / "model.py").write_text(code)
    (folder / "weight_meta.py").write_text("\n\n".join(metas))
    (folder / "input_meta.py").write_text("")
    (folder / "input_tensor_constraints.py").write_text(_constraints(graph.arguments))
    (folder / "graph_hash.txt").write_text(hashlib.sha256(code.encode()).hexdigest())
    header = {"framework": "torch", "num_devices_required": 1, "num_nodes_required": 1, **facts}
    (folder / MARKER).write_text(json.dumps(header, indent=4) + "\n")


def _constraints(arguments: list[Argument]) -> str:
    """Sizes of all tensors; a symbol for each symbolic size of an input, with its example."""
    symbols: dict[str, tuple[str, int]] = {}

    def written(size: Any) -> str:
        if isinstance(size, int):
            return str(size)
        symbol, _ = symbols.setdefault(str(size), (f"S{len(symbols)}", example_size(size)))
        return symbol

    shapes = []
    for argument in sorted(arguments, key=lambda argument: argument.name):
        if argument.size is not None:
            shapes.append(f'    ([{", ".join(written(size) for size in argument.size)}], "{argument.name}"),\n')
    names = [symbol for symbol, _ in symbols.values()]
    examples = ", ".join(f"{symbol}: {example}" for symbol, example in symbols.values())
    lines = ["from sympy import Symbol\n\n"]
    lines += [f'{symbol} = Symbol("{symbol}")\n' for symbol in names]
    lines += [
        f"\ndynamic_dim_constraint_symbols = [{', '.join(names)}]\n\n",
        f"dynamic_dim_constraint_symbol2example_value = {{{examples}}}\n\n",
        "dynamic_dim_constraint_relations = []\n\n",
        "dynamic_dim_constraint_input_shapes = [\n", *shapes, "]\n",
    ]  # fmt: skip
    return "".join(lines)
