"""What the library lacks, written by the solver: the graph goes to `passnet solve` as a folder, its passes into the library."""

from __future__ import annotations

import hashlib
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import torch
import torch.fx

from passnet.extract.capture import Captured
from passnet.extract.errors import CaptureError
from passnet.extract.folder import write_graph_folder
from passnet.extract.fx_text import write_graph
from passnet.extract.metadata import Describer

from .options import Options
from .server import find_program

# Below the library's folder: one empty file for each graph that was solved, or that cannot be.
SOLVED = ".solved"


def solve(graph_module: torch.fx.GraphModule, inputs: list[Any], device: torch.device, options: Options) -> str:
    """Lets the solver write passes for a graph, once, and says what became of it."""
    try:
        written = write_graph(graph_module, inputs)
    except CaptureError as error:
        return f"not solved: {error}"
    library = Path(options.library)
    marker = library / SOLVED / digest(written.code, inputs, device)
    if marker.exists():
        return "solved before"
    with tempfile.TemporaryDirectory(prefix="passnet-solve-") as place:
        folder, out = Path(place) / "graph", Path(place) / "solved"
        write_graph_folder(folder, Captured(written), Describer(), {"model_name": "torch.compile"})
        said = run(
            "solve", str(folder), "--out", str(out), "--engine", "torch", "--device", device.type, "--python",
            sys.executable, seconds=options.solve_seconds,
        )  # fmt: skip
        if said is None and (out / "run").is_dir():
            said = run("library", "add", str(out), "--library", str(library), seconds=60.0)
    if said is None or "the run keeps no passes" in said:
        marker.parent.mkdir(parents=True, exist_ok=True)
        marker.touch()
    return f"not solved: {said}" if said else "solved"


def run(*arguments: str, seconds: float) -> str | None:
    """What went wrong with a command, in its own words."""
    command = [find_program(), *arguments]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=seconds, check=False)
    except subprocess.TimeoutExpired:
        return f"`passnet {arguments[0]}` took more than {seconds:g} seconds"
    except OSError as error:
        return f"{command[0]}: {error}"
    # 1: done, and some graph is not correct; the library keeps that, too.
    if done.returncode in (0, 1):
        return None
    lines = done.stderr.strip().splitlines()
    return lines[0] if lines else f"`passnet {arguments[0]}` ended with {done.returncode}"


def digest(code: str, inputs: list[Any], device: torch.device) -> str:
    kinds = [(tuple(v.shape), str(v.dtype)) if isinstance(v, torch.Tensor) else str(v) for v in inputs]
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else "cpu"
    return hashlib.sha256(repr((code, kinds, name)).encode()).hexdigest()[:32]
