"""A captured graph as the text of `model.py`.

The text is FX's own, with what the format cannot say removed (autocast regions), what is hidden made visible
(constants become arguments) and private names of PyTorch replaced by the public names of the same functions.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import torch
import torch.fx

from .errors import CaptureError

_PRIVATE = re.compile(r"torch\._C\._(nn|fft|linalg|special)\.(\w+)")
_PUBLIC_MODULES = {
    "nn": ("torch.nn.functional", torch.nn.functional, ""),
    "fft": ("torch.fft", torch.fft, "fft_"),
    "linalg": ("torch.linalg", torch.linalg, "linalg_"),
    "special": ("torch.special", torch.special, "special_"),
}
_RENAMED = {
    "torch._C._set_grad_enabled": "torch.set_grad_enabled",
    "torch._C._nn.im2col": "torch.nn.functional.unfold",
    "torch._C._nn.col2im": "torch.nn.functional.fold",
    "torch._C._nn.log_sigmoid": "torch.nn.functional.logsigmoid",
}
_AUTOCAST = {"_enter_autocast", "_exit_autocast"}
# What FX may refer to in a graph's text; anything else is a function from outside PyTorch.
_KNOWN_GLOBALS = {"torch", "device", "inf", "nan", "getattr", "NoneType", "fx_pytree", "pytree"}
_PUBLIC_METHODS = {"__abs__": "abs", "__neg__": "neg", "__invert__": "bitwise_not"}


@dataclass(frozen=True)
class Argument:
    name: str
    value: Any
    # Sizes of a tensor, symbols where they were symbolic.
    size: tuple[Any, ...] | None = None


@dataclass(frozen=True)
class Written:
    code: str
    arguments: list[Argument]


def write_graph(graph_module: torch.fx.GraphModule, examples: list[Any]) -> Written:
    """The text of a graph and its arguments. Raises `CaptureError` for what the format has no words for."""
    graph = torch.fx.Graph()
    copied: dict[torch.fx.Node, torch.fx.Node] = {}
    graph.output(graph.graph_copy(graph_module.graph, copied))
    values = dict(zip((n for n in graph.nodes if n.op == "placeholder"), examples, strict=True))
    _remove_autocast(graph)
    values |= constants_as_arguments(graph, graph_module)
    _refuse_unknown(graph)
    code, unknown = text_of(graph)
    if unknown:
        raise CaptureError("outside torch", f"the graph calls `{unknown[0]}`, which is not PyTorch's")
    placeholders = [n for n in graph.nodes if n.op == "placeholder"]
    return Written(code, [_argument(node, values[node]) for node in placeholders])


def text_of(graph: torch.fx.Graph) -> tuple[str, list[str]]:
    """The text of a graph that holds no tensors, which is changed to what the format says, and the names in it of functions
    that are not PyTorch's."""
    _devices_to_cpu(graph)
    for node in graph.nodes:
        if node.op == "call_method":
            node.target = _PUBLIC_METHODS.get(node.target, node.target)
    source = graph.python_code("self")
    code = _header(source.src) + _indented(public_names(source.src))
    return code, sorted(set(source.globals) - _KNOWN_GLOBALS)


def _argument(node: torch.fx.Node, value: Any) -> Argument:
    size = None
    if isinstance(value, torch.Tensor):
        seen = node.meta.get("example_value")
        size = tuple(seen.shape if isinstance(seen, torch.Tensor) else value.shape)
    return Argument(str(node.target), value, size)


def public_names(code: str) -> str:
    """Private spellings of public functions replaced."""
    for private, public in _RENAMED.items():
        code = re.sub(re.escape(private) + r"\b", public, code)

    def public(match: re.Match[str]) -> str:
        prefix, module, stem = _PUBLIC_MODULES[match.group(1)]
        name = match.group(2).removeprefix(stem)
        return f"{prefix}.{name}" if hasattr(module, name) else match.group(0)

    return _PRIVATE.sub(public, code)


def _header(code: str) -> str:
    lines = ["import torch"]
    lines += [f"from torch import {name}" for name in ("device", "inf", "nan") if re.search(rf"\b{name}\b", code)]
    return "\n".join(lines) + "\n\n\nclass GraphModule(torch.nn.Module):\n"


def _indented(code: str) -> str:
    lines = [line.rstrip() for line in code.strip("\n").splitlines()]
    return "".join(f"    {line}\n" if line else "\n" for line in lines)


def _remove_autocast(graph: torch.fx.Graph) -> None:
    """Autocast regions cannot be said in the format: graphs are captured without autocast in force."""
    for node in reversed(list(graph.nodes)):
        if is_autocast(node):
            enabled = node.target.__name__ == "_enter_autocast" and _is_enabled(node)
            if enabled:
                raise CaptureError("autocast", "the model switches autocast on itself")
            graph.erase_node(node)


def is_autocast(node: torch.fx.Node) -> bool:
    """Whether a node begins or ends a region with its own autocast."""
    return node.op == "call_function" and getattr(node.target, "__name__", "") in _AUTOCAST


def _is_enabled(node: torch.fx.Node) -> bool:
    # device type, dtype, enabled, cache
    device = node.args[0] if node.args else None
    enabled = node.args[2] if len(node.args) > 2 else node.kwargs.get("enabled", True)
    return bool(enabled) and device in ("cpu", None)


def constants_as_arguments(
    graph: torch.fx.Graph, graph_module: torch.fx.GraphModule
) -> dict[torch.fx.Node, Any]:
    """Tensors that the graph holds become arguments: a graph folder has no other place for them."""
    values: dict[torch.fx.Node, Any] = {}
    placeholders = [node for node in graph.nodes if node.op == "placeholder"]
    first = next(iter(graph.nodes))
    known: dict[str, torch.fx.Node] = {}
    for node in list(graph.nodes):
        if node.op != "get_attr":
            continue
        name = str(node.target)
        value: Any = graph_module
        for part in name.split("."):
            value = getattr(value, part)
        if not isinstance(value, torch.Tensor):
            raise CaptureError("nested graph", f"`{name}` is a graph inside the graph")
        if name not in known:
            after = placeholders[-1] if placeholders else None
            with graph.inserting_after(after) if after else graph.inserting_before(first):
                known[name] = graph.placeholder("L_self_buffers_" + name.replace(".", "_"), type_expr=torch.Tensor)
            placeholders.append(known[name])
            values[known[name]] = value
        node.replace_all_uses_with(known[name])
        graph.erase_node(node)
    return values


def _devices_to_cpu(graph: torch.fx.Graph) -> None:
    cpu = torch.device("cpu")

    def moved(value: Any) -> Any:
        return cpu if isinstance(value, torch.device) else value

    for node in graph.nodes:
        node.args = torch.fx.node.map_aggregate(node.args, moved)
        node.kwargs = torch.fx.node.map_aggregate(node.kwargs, moved)


def _refuse_unknown(graph: torch.fx.Graph) -> None:
    for node in graph.nodes:
        outside = outside_format(node)
        if outside is not None:
            raise CaptureError(*outside)


def outside_format(node: torch.fx.Node) -> tuple[str, str] | None:
    """Why the format has no words for a call, in a word and in a sentence; `None` where it may have."""
    target = node.target
    if node.op == "call_function" and isinstance(target, (torch._ops.OpOverload, torch._ops.OpOverloadPacket)):
        name = getattr(target, "overloadpacket", target)._qualified_op_name
        if name.split("::")[0] not in ("aten", "prims"):
            return "outside torch", f"the graph calls `{name.replace('::', '.')}`, which is not PyTorch's"
    if node.op == "call_module":
        return "nested graph", f"`{target}` is a module inside the graph"
    if node.op == "call_function" and isinstance(target, torch._ops.HigherOrderOperator):
        return "nested graph", f"`{target}` takes a graph as an argument"
    return None
