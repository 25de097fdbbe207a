"""What no pass covers, through TorchInductor: sites become operators that it does not look into."""

from __future__ import annotations

import itertools
import operator
import weakref
from collections.abc import Callable
from typing import Any

import torch
import torch.fx

from .rewriting import Rewritten
from .site import Site

_NAMESPACE = "passnet_sites"
_library: Any = None
_numbers = itertools.count()


class Operator:
    """A site as an operator: its tensors and numbers as two lists, its outputs as a list."""

    def __init__(self, site: Site, arguments: tuple[Any, ...]) -> None:
        # Operators stay for ever; the site goes with its graph.
        self.site = weakref.ref(site)
        self.shape = tuple(_shape_of(argument) for argument in arguments)
        self.name = f"site_{next(_numbers)}"
        library = _fragment()
        library.define(f"{self.name}(Tensor[] tensors, SymInt[] numbers) -> Tensor[]")
        library.impl(self.name, self.run, "CompositeExplicitAutograd")
        torch.library.register_fake(f"{_NAMESPACE}::{self.name}", self.look, lib=library)
        self.target = getattr(getattr(torch.ops, _NAMESPACE), self.name).default
        _lower(self.target)

    def arguments(self, tensors: list[Any], numbers: list[Any]) -> tuple[Any, ...]:
        given = {"tensor": iter(tensors), "number": iter(numbers)}
        return tuple(_filled(shape, given) for shape in self.shape)

    def run(self, tensors: list[torch.Tensor], numbers: list[int]) -> list[torch.Tensor]:
        result = self.living().function(*self.arguments(tensors, numbers))
        outputs = list(result) if isinstance(result, (tuple, list)) else [result]
        given = {tensor.untyped_storage().data_ptr() for tensor in tensors}
        # An operator's outputs have memory of their own.
        return [value.clone() if value.untyped_storage().data_ptr() in given else value for value in outputs]

    def living(self) -> Site:
        site = self.site()
        if site is None:
            raise RuntimeError("the graph of this operator is gone")
        return site

    def look(self, tensors: list[Any], numbers: list[Any]) -> list[Any]:
        result = self.living().eager(self.arguments(tensors, numbers))
        outputs = list(result) if isinstance(result, (tuple, list)) else [result]
        return [torch.empty_strided(v.shape, v.stride(), dtype=v.dtype, device=v.device) for v in outputs]


def _lower(target: Any) -> None:
    """Tells TorchInductor to call an operator as it is. An operator that it meets for the first time it describes with all that its
    inputs are computed from, again for each use: the text doubles with every layer of a model, for a log that nobody reads."""
    try:
        from torch._inductor.lowering import make_fallback, tag_to_layout_constraint
        from torch._library.utils import get_layout_constraint_tag
    except ImportError:
        # Another PyTorch: it finds out by itself.
        return
    constraint = tag_to_layout_constraint(get_layout_constraint_tag(target, with_default=True))
    make_fallback(target, layout_constraint=constraint, warn=False)


def _fragment() -> Any:
    global _library
    if _library is None:
        _library = torch.library.Library(_NAMESPACE, "FRAGMENT")
    return _library


def _kind(node: torch.fx.Node) -> str:
    example = node.meta.get("example_value")
    return "number" if isinstance(example, (int, torch.SymInt)) else "tensor"


def _shape_of(argument: Any) -> Any:
    """Where tensors and numbers go among an operator's arguments."""
    if isinstance(argument, torch.fx.Node):
        return _Hole(_kind(argument))
    if isinstance(argument, tuple):
        return tuple(_shape_of(item) for item in argument)
    return argument


class _Hole(str):
    """A place that is filled in a call."""


def _filled(shape: Any, given: dict[str, Any]) -> Any:
    if isinstance(shape, _Hole):
        return next(given[str(shape)])
    if isinstance(shape, tuple):
        return tuple(_filled(item, given) for item in shape)
    return shape


def _nodes(argument: Any) -> list[torch.fx.Node]:
    if isinstance(argument, torch.fx.Node):
        return [argument]
    return [node for item in argument for node in _nodes(item)] if isinstance(argument, tuple) else []


def compiled(
    original: torch.fx.GraphModule, rewritten: Rewritten, inputs: list[Any], mode: str
) -> Callable[..., Any]:
    """The rewritten graph, compiled by TorchInductor."""
    from torch._inductor import list_mode_options
    from torch._inductor.compile_fx import compile_fx

    return compile_fx(lowered(original, rewritten), inputs, config_patches=list_mode_options(mode) or None)


def lowered(original: torch.fx.GraphModule, rewritten: Rewritten) -> torch.fx.GraphModule:
    """The rewritten graph with operators for its sites."""
    sites = dict(zip(map(id, rewritten.stand_ins), rewritten.sites))
    graph = torch.fx.Graph()
    values: dict[torch.fx.Node, Any] = {}
    for node in rewritten.graph.nodes:
        site = sites.get(id(node.target)) if node.op == "call_function" else None
        if site is None:
            values[node] = graph.node_copy(node, lambda used: values[used])
            continue
        made = Operator(site, node.args)
        given = [used for argument in node.args for used in _nodes(argument)]
        tensors = [values[used] for used in given if _kind(used) == "tensor"]
        numbers = [values[used] for used in given if _kind(used) == "number"]
        call = graph.call_function(made.target, (tensors, numbers))
        is_single = not site.gives_tuple and len(site.outputs) == 1
        values[node] = graph.call_function(operator.getitem, (call, 0)) if is_single else call
    return torch.fx.GraphModule(original, graph)
