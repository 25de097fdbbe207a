"""The program's graph with regions replaced: its own nodes in an order that the matcher found safe, and calls of sites."""

from __future__ import annotations

import operator
import types
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import torch.fx

from passnet.extract.fx_text import is_autocast

from .graph_text import GraphText
from .options import Options
from .server import BackendError
from .site import Site


@dataclass
class Rewritten:
    graph: torch.fx.Graph
    sites: list[Site]
    # What the calls of the sites name in the graph, in the same order.
    stand_ins: list[Callable[..., Any]]


def rewrite(
    graph_module: torch.fx.GraphModule,
    text: GraphText,
    answer: dict[str, Any],
    options: Options,
    device: torch.device,
    kept: frozenset[tuple[str, ...]] | None = None,
) -> Rewritten:
    """Follows the matcher's answer; with `kept`, only in the regions that are named by their nodes."""
    builder = Builder(graph_module, text, answer, options, device, kept)
    for place in answer["order"]:
        builder.add(place)
    return builder.finish()


def without(rewritten: Rewritten, given_back: list[Site]) -> Rewritten:
    """The same graph, in which these regions are the program's own nodes again: a call of a region costs more than its nodes do,
    and TorchInductor looks into nodes, not into calls."""
    kept = [(site, name) for site, name in zip(rewritten.sites, rewritten.stand_ins) if site not in given_back]
    back = {id(name): site for site, name in zip(rewritten.sites, rewritten.stand_ins) if site in given_back}
    graph = torch.fx.Graph()
    values: dict[torch.fx.Node, Any] = {}
    for node in rewritten.graph.nodes:
        site = back.get(id(node.target)) if node.op == "call_function" else None
        if site is not None:
            inputs = [values[node.args[index]] for index in site.inputs]
            inside = dict(zip((one for one in site.region.graph.nodes if one.op == "placeholder"), inputs))
            values[node] = graph.graph_copy(site.region.graph, inside)
        elif node.target is operator.getitem and isinstance(values.get(node.args[0]), tuple):
            # One of a region's values.
            values[node] = values[node.args[0]][node.args[1]]
        else:
            values[node] = graph.node_copy(node, lambda used: values[used])
    return Rewritten(graph, [site for site, _ in kept], [name for _, name in kept])


class Builder:
    def __init__(
        self,
        graph_module: torch.fx.GraphModule,
        text: GraphText,
        answer: dict[str, Any],
        options: Options,
        device: torch.device,
        kept: frozenset[tuple[str, ...]] | None,
    ) -> None:
        self.graph_module, self.text, self.answer = graph_module, text, answer
        self.options, self.device, self.kept = options, device, kept
        self.graph = torch.fx.Graph()
        # Where the values of dynamo's nodes are.
        self.values: dict[torch.fx.Node, Any] = {}
        # Copied, or part of a region.
        self.covered: set[torch.fx.Node] = set()
        self.calls: dict[int, torch.fx.Node] = {}
        self.sites: dict[int, Site] = {}
        self.stand_ins: dict[int, Callable[..., Any]] = {}
        self.autocast = Autocast(graph_module.graph, self.graph)
        for node in graph_module.graph.nodes:
            if node.op in ("placeholder", "get_attr"):
                self.copy(node)

    def named(self, name: str) -> torch.fx.Node:
        node = self.text.nodes.get(name)
        if node is None:
            raise BackendError(f"the matcher names `{name}`, which the program's graph does not have")
        return node

    def copy(self, node: torch.fx.Node) -> None:
        self.covered.add(node)
        self.autocast.go_to(node)
        self.values[node] = self.graph.node_copy(node, lambda used: self.values[used])

    def add(self, place: dict[str, Any]) -> None:
        if "node" in place:
            self.copy(self.named(place["node"]))
        elif "item" in place:
            site, index = place["item"]
            output = self.named(self.answer["sites"][site]["outputs"][index])
            if site not in self.calls:
                return
            self.values[output] = self.graph.call_function(operator.getitem, (self.calls[site], index))
        else:
            self.replace(place["site"], place["args"])

    def replace(self, index: int, described: list[dict[str, Any]]) -> None:
        found = self.answer["sites"][index]
        removed = {self.named(name) for name in found["removed"]}
        self.covered |= removed
        # In the program's order.
        body = [node for node in self.graph_module.graph.nodes if node in removed]
        is_left = self.kept is not None and tuple(found["removed"]) not in self.kept
        # No call could stand for operations of which some are under autocast and some are not.
        if is_left or not self.autocast.is_one(body):
            for node in body:
                self.copy(node)
            return
        self.autocast.go_to(body[0])
        outputs = [self.named(name) for name in found["outputs"]]
        read = list(dict.fromkeys(used for node in body for used in node.all_input_nodes if used not in removed))
        arguments = [self.argument(entry) for entry in described]
        positions = {value: at for at, value in reversed(list(enumerate(arguments))) if isinstance(value, torch.fx.Node)}
        for used in read:
            value = self.values[used]
            if value not in positions:
                positions[value] = len(arguments)
                arguments.append(value)
        region = region_of(self.graph_module, body, read, outputs)
        inputs = [positions[self.values[used]] for used in read]
        site = Site(self.answer["graph"], index, found, region, inputs, len(described), self.options, self.device)
        site.under_autocast = self.autocast.is_on(body[0], self.device)
        self.sites[index], self.stand_ins[index] = site, stand_in(index)
        call = self.graph.call_function(self.stand_ins[index], tuple(arguments))
        self.calls[index] = call
        if len(outputs) == 1:
            self.values[outputs[0]] = call

    def argument(self, entry: dict[str, Any]) -> Any:
        if "node" in entry:
            return self.values[self.named(entry["node"])]
        if "float" in entry:
            return float(entry["float"])
        if "items" in entry:
            return tuple(self.argument(item) for item in entry["items"])
        return entry["value"]

    def finish(self) -> Rewritten:
        output = next(node for node in self.graph_module.graph.nodes if node.op == "output")
        self.copy(output)
        lost = [node for node in self.graph_module.graph.nodes if node not in self.covered and not is_autocast(node)]
        if lost:
            raise BackendError(f"the matcher's answer lacks `{lost[0]}`")
        order = sorted(self.sites)
        return Rewritten(self.graph, [self.sites[at] for at in order], [self.stand_ins[at] for at in order])


class Autocast:
    """Contexts of autocast in a graph whose operations come in another order: each stays under those that it was under."""

    def __init__(self, original: torch.fx.Graph, graph: torch.fx.Graph) -> None:
        self.graph = graph
        # For every node, the calls that began the contexts around it.
        self.around: dict[torch.fx.Node, tuple[torch.fx.Node, ...]] = {}
        # Contexts that are open where the new graph ends, and what ends them.
        self.open: list[tuple[torch.fx.Node, torch.fx.Node]] = []
        self.exit: Callable[..., Any] | None = None
        now: tuple[torch.fx.Node, ...] = ()
        for node in original.nodes:
            if not is_autocast(node):
                self.around[node] = () if node.op in ("placeholder", "get_attr", "output") else now
            elif node.target.__name__ == "_enter_autocast":
                now = (*now, node)
            else:
                now, self.exit = tuple(begun for begun in now if begun is not node.args[0]), node.target

    def is_one(self, nodes: list[torch.fx.Node]) -> bool:
        return len({self.around[node] for node in nodes}) == 1

    def is_on(self, node: torch.fx.Node, device: torch.device) -> bool:
        """Whether an operation is under autocast: by the graph's own contexts, or by one around the call."""
        for begun in reversed(self.around[node]):
            kind, enabled = begun.args[0], begun.args[2] if len(begun.args) > 2 else True
            if kind == device.type:
                return bool(enabled)
        return torch.is_autocast_enabled(device.type)

    def go_to(self, node: torch.fx.Node) -> None:
        """Ends and begins contexts as the next call needs it."""
        around = self.around[node]
        if [begun for begun, _ in self.open] == list(around):
            return
        same = 0
        while same < min(len(around), len(self.open)) and self.open[same][0] is around[same]:
            same += 1
        while len(self.open) > same:
            _, context = self.open.pop()
            self.graph.call_function(self.exit, (context,))
        for begun in around[same:]:
            context = self.graph.call_function(begun.target, begun.args, begun.kwargs)
            self.open.append((begun, context))


def region_of(
    graph_module: torch.fx.GraphModule,
    body: list[torch.fx.Node],
    read: list[torch.fx.Node],
    outputs: list[torch.fx.Node],
) -> torch.fx.GraphModule:
    """The replaced nodes as a graph of their own."""
    graph = torch.fx.Graph()
    values: dict[torch.fx.Node, torch.fx.Node] = {used: graph.placeholder(used.name) for used in read}
    for node in body:
        values[node] = graph.node_copy(node, lambda used: values[used])
    results = [values[node] for node in outputs]
    graph.output(results[0] if len(results) == 1 else tuple(results))
    return torch.fx.GraphModule(graph_module, graph)


def stand_in(index: int) -> Callable[..., Any]:
    """A name in a graph, for which the site's function of the moment is put in."""

    def call(*arguments: Any) -> Any:
        raise RuntimeError("a site was not bound")

    named = types.FunctionType(call.__code__, {}, f"site_{index}")
    named.__module__, named.__qualname__ = "passnet_sites", f"site_{index}"
    return named
