"""What the library lacks, written by the solver: the graph goes to `passnet solve` as a folder, its passes into the library."""

from __future__ import annotations

import atexit
import contextlib
import hashlib
import subprocess
import sys
import tempfile
import threading
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

_running: set[subprocess.Popen[str]] = set()
_threads: set[threading.Thread] = set()
# Solvers measure: one at a time.
_turn = threading.Lock()


class Solving:
    """A graph on its way through the solver. Made in a call of the graph, whose inputs say what inputs are like."""

    def __init__(
        self, graph_module: torch.fx.GraphModule, inputs: list[Any], device: torch.device, options: Options
    ) -> None:
        self.library, self.seconds, self.device = Path(options.library), options.solve_seconds, device
        # What became of it; nothing as long as the solver is at work.
        self.note: str | None = None
        try:
            written = write_graph(graph_module, inputs)
        except CaptureError as error:
            self.note = f"not solved: {error}"
            return
        self.marker = self.library / SOLVED / digest(written.code, inputs, device)
        if self.marker.exists():
            self.note = "solved before"
            return
        self.place = tempfile.TemporaryDirectory(prefix="passnet-solve-")
        write_graph_folder(Path(self.place.name) / "graph", Captured(written), Describer(), {"model_name": "torch.compile"})

    def solve(self) -> str:
        """Lets the solver write passes and PassBench judge them, once, and says what became of it."""
        if self.note is None:
            with _turn, self.place:
                said = self.passes_into_library(Path(self.place.name))
                if said is None or "the run keeps no passes" in said:
                    self.marker.parent.mkdir(parents=True, exist_ok=True)
                    self.marker.touch()
            self.note = f"not solved: {said}" if said else "solved"
        return self.note

    def passes_into_library(self, place: Path) -> str | None:
        out = place / "solved"
        said = run(
            "solve", str(place / "graph"), "--out", str(out), "--engine", "torch", "--device", self.device.type, "--python",
            sys.executable, seconds=self.seconds,
        )  # fmt: skip
        if said is None and (out / "run").is_dir():
            said = run("library", "add", str(out), "--library", str(self.library), seconds=60.0)
        return said

    def solve_in_background(self) -> None:
        def work() -> None:
            try:
                self.solve()
            except Exception as error:  # noqa: BLE001 - nobody waits for this thread
                self.note = f"not solved: {error}"
            finally:
                _threads.discard(threading.current_thread())

        thread = threading.Thread(target=work, name="passnet solver", daemon=True)
        _threads.add(thread)
        thread.start()


def wait_for_solver() -> None:
    """Until nothing is solved in the background any more; the next call of a graph then uses what was found."""
    for thread in list(_threads):
        thread.join()


def run(*arguments: str, seconds: float) -> str | None:
    """What went wrong with a command, in its own words."""
    command = [find_program(), *arguments]
    try:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
    except OSError as error:
        return f"{command[0]}: {error}"
    _running.add(process)
    try:
        _, errors = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        return f"`passnet {arguments[0]}` took more than {seconds:g} seconds"
    finally:
        _running.discard(process)
    # 1: done, and some graph is not correct; the library keeps that, too.
    if process.returncode in (0, 1):
        return None
    lines = errors.strip().splitlines()
    return lines[0] if lines else f"`passnet {arguments[0]}` ended with {process.returncode}"


@atexit.register
def _stop() -> None:
    """A program that ends does not wait for the solver."""
    for process in list(_running):
        with contextlib.suppress(OSError):
            process.kill()


def digest(code: str, inputs: list[Any], device: torch.device) -> str:
    kinds = [(tuple(v.shape), str(v.dtype)) if isinstance(v, torch.Tensor) else str(v) for v in inputs]
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else "cpu"
    return hashlib.sha256(repr((code, kinds, name)).encode()).hexdigest()[:32]
