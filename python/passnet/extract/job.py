"""One model from its entry to its folder, in a process of its own."""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from .capture import capture
from .errors import CaptureError
from .folder import write_capture
from .lazy_init import LazyInit
from .metadata import Describer
from .model import Model

SEED = 123
_LONGEST_REASON = 400


def run(
    build: Callable[[], Model],
    folder: Path,
    facts: dict[str, Any],
    *,
    dynamic: bool = False,
    fullgraph: bool = False,
    stage: Callable[[str], None] = lambda _: None,
) -> dict[str, Any]:
    """Captures a model into `folder`; the answer is what a line of the results file says of it."""

    def work() -> dict[str, Any]:
        stage("building")
        torch.manual_seed(SEED)
        with LazyInit() as weights:
            model = build()
        model.module.eval()
        stage("capturing")
        found = capture(model.module, model.args, model.kwargs, dynamic=dynamic, fullgraph=fullgraph)
        stage("writing")
        describer = Describer(weights)
        for tensor, limits in model.ranges:
            describer.remember(tensor, limits)
        settings = {"torch_version": torch.__version__.split("+")[0], "dynamic": dynamic}
        folders = write_capture(folder, found, describer, {**facts, **model.facts, **settings})
        return {
            "graphs": len(folders),
            "repeats": found.repeats,
            "parameters": sum(parameter.numel() for parameter in model.module.parameters()),
            "breaks": [_short(reason) for reason in found.breaks[:3]],
        }

    return attempt(work)


def attempt(work: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """What `work` says of a model, or why it failed: a line of the results file."""
    start = time.process_time()
    try:
        answer = work()
    except CaptureError as error:
        return failure(error.kind, error.message)
    except Exception as error:  # noqa: BLE001 - a model's own code may raise anything
        return failure_of(error)
    return {"outcome": "captured", **answer, "cpu_seconds": round(time.process_time() - start, 2)}


def failure(kind: str, reason: str) -> dict[str, Any]:
    return {"outcome": "failed", "kind": kind, "reason": _short(reason)}


def failure_of(error: Exception) -> dict[str, Any]:
    cause: BaseException = error
    while isinstance(cause.__cause__, Exception):
        if isinstance(cause, CaptureError):
            break
        cause = cause.__cause__
    if isinstance(cause, CaptureError):
        return failure(cause.kind, cause.message)
    name = type(error).__name__
    text = f"{name}: {error}" if str(error) else name
    place = traceback.extract_tb(error.__traceback__)
    in_dynamo = any("_dynamo" in frame.filename for frame in place)
    data_dependent = ("data-dependent", "Data-dependent", "DataDependent", "unbacked")
    if any(word in text or word in name for word in data_dependent):
        return failure("data-dependent control flow", text)
    if isinstance(error, (MemoryError,)) or "can't allocate memory" in text:
        return failure("memory limit", text)
    if isinstance(error, (ImportError, ModuleNotFoundError)):
        return failure("missing package", text)
    return failure("capture failed" if in_dynamo else "factory raised", text)


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST_REASON else line[: _LONGEST_REASON - 1] + "…"
