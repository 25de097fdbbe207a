"""Dynamo's graph as the text that the matcher reads, and the way back from its names to nodes.

What the format has no words for (operators from outside PyTorch, graphs inside the graph, odd constants) becomes a call of
an unknown function of the same values: the matcher leaves it alone and moves nothing across it that it could change.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import torch
import torch.fx

from passnet.extract.fx_text import constants_as_arguments, is_autocast, outside_format, text_of

from .server import BackendError

# How often a statement that the reader refuses is made opaque before the graph is given up.
RETRIES = 100


def _opaque(*_values: Any) -> None:
    """Never called: a name in a text."""


_opaque.__module__, _opaque.__name__, _opaque.__qualname__ = "torch", "passnet_opaque", "passnet_opaque"


@dataclass
class GraphText:
    code: str
    # Names in the text, and the nodes of dynamo's graph that have these values.
    nodes: dict[str, torch.fx.Node]


def write(graph_module: torch.fx.GraphModule, opaque: set[str]) -> GraphText:
    """The text of a graph, with the calls of these names opaque."""
    graph = torch.fx.Graph()
    copied: dict[torch.fx.Node, torch.fx.Node] = {}
    graph.output(graph.graph_copy(graph_module.graph, copied))
    # From the end: what ends a context uses what began it.
    for node in reversed(list(graph.nodes)):
        if is_autocast(node):
            # The matcher looks at operations, not at types; `rewriting.py` puts these back.
            graph.erase_node(node)
        elif outside_format(node) is not None or node.name in opaque or _is_outside(node):
            _hide(graph, graph_module, node)
    for node in list(graph.nodes):
        if node.op == "get_attr" and not isinstance(_attribute(graph_module, node), torch.Tensor):
            graph.erase_node(node)
    constants_as_arguments(graph, graph_module)
    originals = {copy: node for node, copy in copied.items()}
    nodes: dict[str, torch.fx.Node] = {}
    for node in graph_module.graph.nodes:
        if node.op == "get_attr":
            nodes.setdefault("L_self_buffers_" + str(node.target).replace(".", "_"), node)
    for copy in graph.nodes:
        if copy in originals and copy.op != "output":
            nodes[str(copy.target) if copy.op == "placeholder" else copy.name] = originals[copy]
    code, unknown = text_of(graph)
    if unknown:
        raise BackendError(f"the graph calls `{unknown[0]}`, which is not PyTorch's")
    return GraphText(code, nodes)


def _attribute(graph_module: torch.fx.GraphModule, node: torch.fx.Node) -> Any:
    value: Any = graph_module
    for part in str(node.target).split("."):
        value = getattr(value, part)
    return value


def _is_outside(node: torch.fx.Node) -> bool:
    """Whether a function is neither PyTorch's nor an operator of Python's."""
    if node.op != "call_function":
        return False
    module = getattr(node.target, "__module__", None) or ""
    is_torchs = module.split(".")[0] in ("torch", "_operator", "builtins", "math", "")
    return not (is_torchs or isinstance(node.target, (torch._ops.OpOverload, torch._ops.OpOverloadPacket)))


def _hide(graph: torch.fx.Graph, graph_module: torch.fx.GraphModule, node: torch.fx.Node) -> None:
    """The same name, made of the same values by nobody knows what."""
    is_graph = {
        used: used.op == "get_attr" and not isinstance(_attribute(graph_module, used), torch.Tensor)
        for used in node.all_input_nodes
    }
    node.op, node.target = "call_function", _opaque
    node.args, node.kwargs = tuple(used for used, hidden in is_graph.items() if not hidden), {}


def refused_statement(text: GraphText, error: str) -> str | None:
    """The name that is assigned in the line that the reader refuses."""
    place = re.match(r"graph:(\d+):", error)
    lines = text.code.splitlines()
    if place is None or not 0 < int(place.group(1)) <= len(lines):
        return None
    statement = re.match(r"\s*(\w+)\s*=", lines[int(place.group(1)) - 1])
    name = statement.group(1) if statement else None
    node = text.nodes.get(name) if name else None
    return name if node is not None and node.op not in ("placeholder", "get_attr") else None
