"""Whether a replaced region gave what eager gives, by the tolerances of PassBench, with float64 as the arbiter."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
import torch.fx

from passnet.parity import yardstick

# The level at which PassBench calls a graph correct.
BASELINE = -5

# Times a whole graph's result may be as far from float64's as eager's is.
AS_NEAR = 2.0

_NARROW = (torch.float16, torch.bfloat16, torch.float32)
_NARROW_METHODS = ("float", "half", "bfloat16")


def flat(value: Any) -> list[Any]:
    if isinstance(value, (tuple, list)):
        return [leaf for item in value for leaf in flat(item)]
    return [value]


def difference(expected: Any, found: Any, truth: Callable[[], Any], is_whole: bool = False) -> str | None:
    """What is wrong with the outputs of a region, in words; `None` where nothing is. The roundings of a whole graph come
    together: one that is about as near to float64 as eager is right, too."""
    expected, found = flat(expected), flat(found)
    if len(expected) != len(found):
        return f"{len(found)} outputs instead of {len(expected)}"
    exact: list[Any] | None = None
    for index, (one, two) in enumerate(zip(expected, found)):
        if not isinstance(one, torch.Tensor) or not isinstance(two, torch.Tensor):
            if type(one) is not type(two) or one != two:
                return f"output {index} is {two!r} instead of {one!r}"
            continue
        if one.shape != two.shape:
            return f"output {index} has size {tuple(two.shape)} instead of {tuple(one.shape)}"
        if one.dtype != two.dtype:
            return f"output {index} is {two.dtype} instead of {one.dtype}"
        if one.device != two.device:
            return f"output {index} lies on {two.device} instead of {one.device}"
        if torch.equal(one, two) or yardstick.worst_excess(one, two, BASELINE) <= 1.0:
            continue
        if exact is None:
            exact = _truth(truth)
        judged = None
        if exact is not None and len(exact) == len(expected) and isinstance(exact[index], torch.Tensor):
            judged = yardstick.judge([exact[index]], [one], [two], BASELINE)
            if is_whole and is_as_near([exact[index]], [one], [two]):
                continue
        if judged is None or not judged.is_right:
            worst = yardstick.worst_excess(one, two, BASELINE)
            return f"output {index} is off by {worst:.3g} tolerances"
    return None


def distance(truth: list[torch.Tensor], found: list[torch.Tensor]) -> float:
    """How far outputs are from the float64 result, relative to its size: the worst output."""
    if len(truth) != len(found) or any(one.shape != two.shape for one, two in zip(truth, found)):
        return math.inf
    worst = 0.0
    for exact, value in zip(truth, found):
        if not exact.is_floating_point():
            worst = worst if torch.equal(exact, value) else math.inf
            continue
        size = float(exact.double().norm()) or 1.0
        off = float((exact.double() - value.double()).norm()) / size
        worst = max(worst, off if math.isfinite(off) else math.inf)
    return worst


def is_as_near(truth: list[torch.Tensor], expected: list[torch.Tensor], found: list[torch.Tensor]) -> bool:
    """Whether outputs are about as near to the float64 result as eager's are."""
    limits = [yardstick.tolerance(value.dtype, BASELINE) for value in expected if value.is_floating_point()]
    least = max((limit[0] for limit in limits if limit), default=0.0)
    return distance(truth, found) <= max(AS_NEAR * distance(truth, expected), least)


def _truth(truth: Callable[[], Any]) -> list[Any] | None:
    try:
        return flat(truth())
    except Exception:  # noqa: BLE001 - what does not run in float64 is judged without it
        return None


def other_layout(expected: Any, found: Any) -> bool:
    """Whether an output is laid out in memory as eager's is not: what follows may look at that."""

    def layout(value: Any) -> Any:
        if not isinstance(value, torch.Tensor) or value.numel() == 0:
            return None
        return [stride for size, stride in zip(value.shape, value.stride()) if size != 1]

    return any(layout(one) != layout(two) for one, two in zip(flat(expected), flat(found)))


def shares_memory(outputs: Any, inputs: Any) -> bool:
    """Whether an output lies in the memory of an input."""
    storages = {v.untyped_storage().data_ptr() for v in flat(inputs) if isinstance(v, torch.Tensor) and v.numel()}
    return any(
        isinstance(v, torch.Tensor) and v.numel() > 0 and v.untyped_storage().data_ptr() in storages
        for v in flat(outputs)
    )


def in_double(region: torch.fx.GraphModule) -> torch.fx.GraphModule:
    """The same region, computing in float64 wherever it names a float type."""

    def wide(value: Any) -> Any:
        return torch.float64 if value in _NARROW else value

    graph = torch.fx.Graph()
    graph.output(graph.graph_copy(region.graph, {}))
    for node in graph.nodes:
        node.args = torch.fx.node.map_aggregate(node.args, lambda v: wide(v) if isinstance(v, torch.dtype) else v)
        node.kwargs = torch.fx.node.map_aggregate(node.kwargs, lambda v: wide(v) if isinstance(v, torch.dtype) else v)
        if node.op == "call_method" and node.target in _NARROW_METHODS:
            node.target = "double"
    return torch.fx.GraphModule(region, graph)


def widened(value: Any) -> Any:
    """Arguments with every float tensor in float64."""
    if isinstance(value, (tuple, list)):
        return type(value)(widened(item) for item in value)
    if isinstance(value, torch.Tensor) and value.is_floating_point():
        return value.double()
    return value
