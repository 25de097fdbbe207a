"""What is captured: a module with example inputs, and where such modules come from."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from .errors import CaptureError
from .metadata import Range


@dataclass
class Model:
    """A module ready for capture."""

    module: torch.nn.Module
    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] = field(default_factory=dict)
    # Integer inputs and the values they may take, such as token numbers below the size of the vocabulary.
    ranges: list[tuple[torch.Tensor, Range]] = field(default_factory=list)
    # More lines for `graph_net.json`.
    facts: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Entry:
    """One model of a catalogue. `options` is plain data, so that an entry can be a line of JSON."""

    family: str
    name: str
    source: str
    options: dict[str, Any] = field(default_factory=dict)

    @property
    def id(self) -> str:
        return f"{self.family}/{self.name}"


def from_file(spec: str) -> Callable[[], Model]:
    """`path/to/file.py:factory` as a function that builds the model."""
    path, _, name = spec.rpartition(":")
    if not path or not name.isidentifier():
        raise CaptureError("bad request", f"`{spec}` is not FILE.py:FACTORY")

    def build() -> Model:
        file = Path(path).resolve()
        found = importlib.util.spec_from_file_location(file.stem, file)
        if found is None or found.loader is None or not file.is_file():
            raise CaptureError("bad request", f"there is no Python file `{path}`")
        sys.path.insert(0, str(file.parent))
        loaded = importlib.util.module_from_spec(found)
        sys.modules[file.stem] = loaded
        found.loader.exec_module(loaded)
        factory = getattr(loaded, name, None)
        if not callable(factory):
            raise CaptureError("bad request", f"`{path}` has no function `{name}`")
        return from_answer(factory())

    return build


def from_answer(answer: Any) -> Model:
    """What a factory may return: a module with `example_inputs()`, or `(module, inputs[, ranges])`."""
    ranges: dict[str, Any] = {}
    if isinstance(answer, tuple) and len(answer) in (2, 3):
        module, inputs = answer[0], answer[1]
        ranges = answer[2] if len(answer) == 3 else {}
    else:
        module = answer
        examples = getattr(answer, "example_inputs", None)
        inputs = examples() if callable(examples) else None
    if not isinstance(module, torch.nn.Module):
        raise CaptureError("no module", f"the factory returned {type(module).__name__}, not a torch.nn.Module")
    if inputs is None:
        raise CaptureError(
            "no inputs", "the factory gives no inputs: return (module, inputs) or define module.example_inputs()"
        )
    args, kwargs = _as_call(inputs)
    limits = [(tensor, Range(*ranges[name])) for name, tensor in _named(args, kwargs) if name in ranges]
    return Model(module, args, kwargs, limits)


def _as_call(inputs: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    if isinstance(inputs, dict):
        return (), dict(inputs)
    if isinstance(inputs, (tuple, list)):
        return tuple(inputs), {}
    return (inputs,), {}


def _named(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Iterable[tuple[Any, torch.Tensor]]:
    for name, value in [*enumerate(args), *kwargs.items()]:
        if isinstance(value, torch.Tensor):
            yield name, value
