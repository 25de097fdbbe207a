"""What the backend did with the graphs of this process."""

from __future__ import annotations

import collections
import weakref
from typing import Any

import torch.fx

from .compiled import CompiledGraph
from .fastest import WITHOUT_PASSES
from .server import server

_graphs: list[weakref.ref[CompiledGraph]] = []
# Graphs that run as they are, and why.
_left: collections.deque[dict[str, Any]] = collections.deque(maxlen=100)


def remember(graph: CompiledGraph) -> None:
    _graphs[:] = [known for known in _graphs if known() is not None]
    _graphs.append(weakref.ref(graph))


def left(reason: str, graph: torch.fx.Graph, answer: dict[str, Any] | None = None) -> None:
    """Notes a graph that runs as it is."""
    nodes = _nodes(graph)
    said = answer or {"passed_over": [], "notes": []}
    _left.append(
        {
            "reason": reason,
            "operations": len(nodes),
            "passed_over": said["passed_over"],
            "notes": said["notes"],
            "nodes": nodes,
        }
    )


def clear() -> None:
    _graphs.clear()
    _left.clear()


def report() -> Report:
    """What was replaced where, by which pass, how fast it is, and what was left to eager PyTorch and why."""
    graphs = [_described(graph) for graph in (known() for known in _graphs) if graph is not None]
    return Report(graphs, list(_left))


def _nodes(graph: torch.fx.Graph) -> list[dict[str, Any]]:
    """The operations of a graph in the program's order, and from which others each takes values."""
    return [
        {
            "name": node.name,
            "operation": _operation(node),
            "inputs": [used.name for used in node.all_input_nodes if used.op.startswith("call_")],
        }
        for node in graph.nodes
        if node.op.startswith("call_")
    ]


def _operation(node: torch.fx.Node) -> str:
    if isinstance(node.target, str):
        return node.target
    return getattr(node.target, "__name__", None) or str(node.target)


def _described(graph: CompiledGraph) -> dict[str, Any]:
    nodes = _nodes(graph.original.graph)
    return {
        "operations": len(nodes),
        "replaced": sum(len(site.removed) for site in graph.sites if site.state == "used" and graph.way not in WITHOUT_PASSES),
        "calls": graph.calls,
        "way": graph.way,
        "ways_us": {way: round(seconds * 1e6, 2) for way, seconds in graph.times.items()},
        "recorded": len(graph.recorder.recordings) if graph.recorder else 0,
        "regions": [
            {
                "pass": site.name,
                "operations": site.removed,
                "state": site.state,
                "kinds": [
                    {
                        "reason": kind.reason,
                        "eager_us": round(kind.seconds[0] * 1e6, 2) if kind.seconds else None,
                        "pass_us": round(kind.seconds[1] * 1e6, 2) if kind.seconds else None,
                        "checks": kind.checks,
                    }
                    for kind in site.kinds
                ],
            }
            for site in graph.sites
        ],
        "passed_over": graph.answer["passed_over"],
        "notes": graph.answer["notes"],
        "nodes": nodes,
    }


class Report:
    """Printed, it is a table; `as_dict` is for machines, `as_html` a page with the graphs."""

    def __init__(self, graphs: list[dict[str, Any]], left: list[dict[str, Any]]) -> None:
        self.graphs, self.left = graphs, left

    def as_dict(self) -> dict[str, Any]:
        return {"graphs": self.graphs, "left": self.left}

    def as_html(self, title: str = "PassNet: what became of the program's graphs") -> str:
        """A page that needs nothing else, with every graph drawn."""
        return server().ask({"call": "page", "title": title, "report": self.as_dict()})["page"]

    def __str__(self) -> str:
        lines = []
        for number, graph in enumerate(self.graphs):
            lines.append(f"graph {number}: {graph['replaced']} of {graph['operations']} operations replaced")
            for region in graph["regions"]:
                place = region["operations"][0]
                if len(region["operations"]) > 1:
                    place += f" … {region['operations'][-1]} ({len(region['operations'])})"
                kind = region["kinds"][-1] if region["kinds"] else {}
                times = f"{kind['eager_us']} -> {kind['pass_us']} µs" if kind.get("eager_us") is not None else ""
                lines.append(f"  {region['state']:8} {region['pass']}  {place}  {times}  {kind.get('reason') or ''}".rstrip())
            lines += _remarks(graph)
        for graph in self.left:
            lines.append(f"a graph of {graph['operations']} operations runs as it is: {graph['reason']}")
            lines += _remarks(graph)
        return "\n".join(lines) or "no graph was compiled"

    __repr__ = __str__


def _remarks(graph: dict[str, Any]) -> list[str]:
    reasons = {entry["pass"]: entry["reason"] for entry in graph["passed_over"]}
    return [f"  not used {name}: {reason}" for name, reason in reasons.items()] + [
        f"  note: {note}" for note in graph["notes"]
    ]
