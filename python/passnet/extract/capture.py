"""A module and example inputs become graphs, by dynamo, without running the module.

Dynamo looks at sizes and dtypes only. Where it has to leave the graph and go on in Python (a graph break), the values
Python sees are zeros of the right size: every graph on the way is kept, and why the graph broke is kept with them.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
import torch._dynamo
from torch._dynamo import trace_rules
from torch._dynamo.utils import counters

from .errors import CaptureError
from .fx_text import Argument, Written, write_graph

# What a symbolic size or a number read from a tensor stands for in files.
SYMBOL_EXAMPLE = 4
MOST_GRAPHS = 64


@dataclass(frozen=True)
class Captured:
    """One graph: its text, and each argument as it was when captured."""

    written: Written

    @property
    def arguments(self) -> list[Argument]:
        return self.written.arguments


@dataclass
class Capture:
    graphs: list[Captured] = field(default_factory=list)
    # Why dynamo left the graph, most frequent first.
    breaks: list[str] = field(default_factory=list)
    # Graphs that were the same, letter by letter and size by size, as one before.
    repeats: int = 0


def capture(
    module: torch.nn.Module,
    args: tuple[Any, ...] = (),
    kwargs: dict[str, Any] | None = None,
    *,
    dynamic: bool = False,
    fullgraph: bool = False,
) -> Capture:
    """Every graph of one call of `module`. Raises `CaptureError` if there is none."""
    result = Capture()
    seen: set[tuple[str, str]] = set()

    def backend(graph_module: torch.fx.GraphModule, examples: list[Any]) -> Callable[..., Any]:
        written = write_graph(graph_module, examples)
        signature = str([_signature(argument.value) for argument in written.arguments])
        if (written.code, signature) in seen:
            result.repeats += 1
        else:
            seen.add((written.code, signature))
            result.graphs.append(Captured(written))
        if len(result.graphs) > MOST_GRAPHS:
            raise CaptureError("too many graphs", f"more than {MOST_GRAPHS} graphs in one model")
        return _stand_in(graph_module)

    run_captured(module, args, kwargs or {}, backend, dynamic=dynamic, fullgraph=fullgraph)
    if len(result.graphs) > 1:
        result.breaks = _reasons()
    if not result.graphs:
        raise CaptureError("no graph", "the module computes nothing that dynamo captures")
    return result


def _reasons() -> list[str]:
    """The first line of each of dynamo's explanations."""
    explained = (counters["unimplemented"] + counters["graph_break"]).most_common()
    return list(dict.fromkeys(text.strip().splitlines()[0] for text, _ in explained if text.strip()))


def run_captured(
    module: torch.nn.Module,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    backend: Callable[..., Any],
    *,
    dynamic: bool = False,
    fullgraph: bool = False,
) -> Any:
    """One call of `module` through dynamo with `backend`."""
    torch._dynamo.reset()
    counters.clear()
    _trace_through_einops()
    with _settings(), torch.no_grad():
        compiled = torch.compile(module, backend=backend, dynamic=dynamic, fullgraph=fullgraph)
        return compiled(*args, **kwargs)


def _trace_through_einops() -> None:
    """Dynamo keeps calls of einops whole, and no graph of PyTorch alone can hold those: it follows their code instead."""
    if "einops" not in sys.modules:
        return
    import einops

    # Now, so that dynamo does not do it at its first call.
    trace_rules._maybe_init_lazy_module(einops.rearrange)
    for name in ("rearrange", "reduce", "repeat", "einsum", "pack", "unpack"):
        trace_rules._allowed_callable_ids.remove(id(getattr(einops, name)))
    # einops finds out at the first call what kind of tensor it has, in a way that dynamo cannot always follow.
    for tensor in (torch.ones(1), torch.nn.Parameter(torch.ones(1))):
        einops.rearrange(tensor, "i -> i")


@contextmanager
def _settings() -> Iterator[None]:
    wanted = {
        "capture_scalar_outputs": True,
        "capture_dynamic_output_shape_ops": True,
        "allow_rnn": True,
        "suppress_errors": False,
        "recompile_limit": 256,
        "accumulated_recompile_limit": 1024,
        "verify_correctness": False,
    }
    known = {name: value for name, value in wanted.items() if hasattr(torch._dynamo.config, name)}
    loggers = [logging.getLogger(name) for name in ("torch._dynamo", "torch.fx.experimental")]
    levels = [logger.level for logger in loggers]
    try:
        for logger in loggers:
            logger.setLevel(logging.CRITICAL)
        with torch._dynamo.config.patch(**known):
            yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)


def _signature(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return (list(value.shape), str(value.dtype))
    return value


def _stand_in(graph_module: torch.fx.GraphModule) -> Callable[..., Any]:
    """In place of the graph: outputs of the right size, inputs handed through."""
    nodes = list(graph_module.graph.nodes)
    places = {node: i for i, node in enumerate(n for n in nodes if n.op == "placeholder")}
    outputs = nodes[-1].args[0]

    def value_of(node: Any, arguments: tuple[Any, ...]) -> Any:
        if not isinstance(node, torch.fx.Node):
            return node
        if node in places:
            return arguments[places[node]]
        return _zeros(node.meta.get("example_value"))

    return lambda *arguments: tuple(value_of(node, arguments) for node in outputs)


def _zeros(example: Any) -> Any:
    if isinstance(example, torch.Tensor):
        size = [example_size(dimension) for dimension in example.shape]
        return torch.zeros(size, dtype=example.dtype)
    if isinstance(example, torch.SymInt):
        return example_size(example)
    if isinstance(example, torch.SymFloat):
        return 0.0
    if isinstance(example, torch.SymBool):
        return False
    if isinstance(example, (tuple, list)):
        return type(example)(_zeros(element) for element in example)
    return example


def example_size(size: Any) -> int:
    """The number of a symbolic size: what it was when captured, else the format's stand-in."""
    if isinstance(size, int):
        return size
    hint = size.node.hint if size.node.has_hint() else None
    return SYMBOL_EXAMPLE if hint is None else int(hint)
