"""Does PyTorch run graphs as they are? `python -m passnet.graphs.eager FOLDER... [--draw N] [--most-elements N]`

Every graph folder below the named ones is run once on the CPU, with inputs drawn as they are recorded, and one line of JSON
says what came of it: `ok`, or `refused` with PyTorch's words, or `nan` where an output is not a number although every input
is one. With `--draw N`, the N folders are taken whose paths have the least SHA-256: a rule that anyone can repeat, and that
knows nothing of the graphs. Ends with exit code 1 where a graph was refused.
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import json
import math
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import torch

from .dual_run import DeviceMapper
from .replay import read_metas, replay_inputs


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--draw", type=int, metavar="N", help="take so many of them, by the SHA-256 of their paths")
    parser.add_argument("--most-elements", type=int, default=4_000_000, metavar="N", help="of all arguments of a graph together")
    options = parser.parse_args()
    torch.set_num_threads(1)
    graphs = [(str(path.relative_to(top)), path) for top in options.folders for path in graph_folders(top)]
    graphs.sort(key=lambda graph: hashlib.sha256(graph[0].encode()).digest())
    counts: Counter[str] = Counter()
    for name, folder in graphs:
        if options.draw is not None and counts.total() >= options.draw:
            break
        if elements(folder) > options.most_elements:
            continue
        outcome, reason = run(folder)
        counts[outcome] += 1
        print(json.dumps({"graph": name, "outcome": outcome, "reason": reason}), flush=True)
    print(json.dumps({"graphs": counts.total(), **counts}))
    return 1 if counts["refused"] else 0


def graph_folders(top: Path) -> Iterator[Path]:
    for path in top.rglob("model.py"):
        if (path.parent / "graph_net.json").is_file():
            yield path.parent


def elements(folder: Path) -> int:
    return sum(math.prod(meta.shape) for name in ("weight_meta.py", "input_meta.py") for meta in read_metas(folder / name))


def run(folder: Path) -> tuple[str, str]:
    """What becomes of one graph, and why."""
    try:
        inputs = replay_inputs(folder)
        # The graph's own text, made by us or read by us before: it is run here, in a process that holds nothing else.
        tree = DeviceMapper().visit(ast.parse((folder / "model.py").read_text()))
        scope = {"_device": torch.device("cpu")}
        exec(compile(ast.fix_missing_locations(tree), "model.py", "exec"), scope)
        graph = scope["GraphModule"]()
        parameters = [name for name in forward_parameters(tree) if name != "self"]
        with torch.no_grad():
            outputs = graph(*(inputs[name] for name in parameters))
    except Exception as error:  # whatever PyTorch refuses is a result
        return "refused", f"{type(error).__name__}: {error}".splitlines()[0][:300]
    floats = [tensor for tensor in tensors(outputs) if tensor.is_floating_point()]
    if any(bool(torch.isnan(tensor).any()) for tensor in floats):
        return "nan", "an output is not a number"
    return "ok", ""


def forward_parameters(tree: ast.Module) -> list[str]:
    functions = (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.name == "forward")
    return [argument.arg for argument in next(functions).args.args]


def tensors(value: object) -> Iterator[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (tuple, list)):
        for item in value:
            yield from tensors(item)


if __name__ == "__main__":
    sys.exit(main())
