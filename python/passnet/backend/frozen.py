"""`freeze`: TorchInductor with the weights as constants, which it folds into each other and lays out as its kernels like them.

Dynamo hands weights to a graph as inputs, because a program may change them. Here they are attributes of the graph, and every call
looks whether the weights that it was given are still those that were frozen: the same tensors, at the same place, not updated
since. What PyTorch does not count as an update, such as one through `.data`, is not seen.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.fx
from torch._guards import TracingContext, detect_fake_mode, tracing
from torch._subclasses.fake_tensor import FakeTensorMode

from .cuda_graph import same_places, static_inputs
from .verification import difference, in_double, other_layout, shares_memory, widened

# Weights that changed are frozen anew once so many calls in a row had the same ones, and so many times at the most: a program
# that trains changes them all the time.
CALM = 20
MOST = 2


class CannotFreeze(Exception):
    """Why a graph is not frozen."""


class Weights:
    """The weights among a graph's inputs, as they are now."""

    def __init__(self, indices: list[int], inputs: tuple[Any, ...]) -> None:
        self.indices, self.given = indices, [inputs[index] for index in indices]
        try:
            self.versions = [weight._version for weight in self.given]
        except RuntimeError as error:
            raise CannotFreeze("its weights were made in inference mode, where no update is counted") from error
        # As long as these live, nothing else comes to lie in their places.
        self.held = [weight.detach() for weight in self.given]
        self.places: list[int | None] = [None] * len(inputs)
        for index, weight in zip(indices, self.given):
            self.places[index] = weight.data_ptr()

    def are(self, inputs: tuple[Any, ...]) -> bool:
        """Whether a call has the same."""
        given = [inputs[index] for index in self.indices]
        return (
            all(map(_is, given, self.given))
            and same_places(list(inputs), self.places, self.indices)
            and [weight._version for weight in given] == self.versions
        )


def _is(one: Any, two: Any) -> bool:
    return one is two


class Frozen:
    """A graph with the weights of a moment."""

    def __init__(
        self,
        original: torch.fx.GraphModule,
        lowered: torch.fx.GraphModule,
        inputs: tuple[Any, ...],
        examples: list[Any],
    ) -> None:
        """`lowered` is what TorchInductor compiles, with the inputs of the original."""
        self.original, self.lowered, self.examples = original, lowered, examples
        static = static_inputs(original.graph)
        self.indices = [index for index, is_static in enumerate(static) if is_static]
        self.others = [index for index, is_static in enumerate(static) if not is_static]
        if not self.indices:
            raise CannotFreeze("it has no weights")
        # How often it was frozen anew, and how many calls in a row had the weights that it would have then.
        self.again, self.calm = 0, 0
        self.next: Weights | None = None
        self.freeze(inputs)

    def freeze(self, inputs: tuple[Any, ...]) -> None:
        self.weights = Weights(self.indices, inputs)
        self.call = self.compiled(inputs)
        self.hold_against_eager(inputs)

    def __call__(self, *inputs: Any) -> Any:
        return self.call(*[inputs[index] for index in self.others])

    def holds(self, inputs: tuple[Any, ...]) -> bool:
        return self.weights.are(inputs)

    def is_to_be_renewed(self, inputs: tuple[Any, ...]) -> bool:
        """In a call whose weights are others: whether they have been the same for a while."""
        if self.next is None or not self.next.are(inputs):
            self.next, self.calm = Weights(self.indices, inputs), 0
        self.calm += 1
        return self.calm >= CALM

    def renew(self, inputs: tuple[Any, ...]) -> None:
        if self.again >= MOST:
            raise CannotFreeze("its weights change too often")
        self.again += 1
        self.next = None
        self.freeze(inputs)

    def compiled(self, inputs: tuple[Any, ...]) -> Callable[..., Any]:
        from torch._inductor.compile_fx import compile_fx

        graph = torch.fx.Graph()
        values: dict[torch.fx.Node, torch.fx.Node] = {}
        attributes: dict[str, Any] = {}
        weights = dict(zip(self.indices, self.weights.given))
        placeholders = (node for node in self.lowered.graph.nodes if node.op == "placeholder")
        position = {node: index for index, node in enumerate(placeholders)}
        for node in self.lowered.graph.nodes:
            if position.get(node) in weights:
                name = f"frozen_{position[node]}"
                attributes[name] = weights[position[node]]
                values[node] = graph.get_attr(name)
                values[node].meta = dict(node.meta)
                continue
            if node.op == "get_attr":
                attributes[node.target] = _attribute(self.lowered, node.target)
            values[node] = graph.node_copy(node, lambda used: values[used])
        module = torch.fx.GraphModule(attributes, graph)
        examples = [self.examples[index] for index in self.others]
        mode = detect_fake_mode(examples) or FakeTensorMode(static_shapes=True)
        # A context of its own: freezing takes the weights out of what it finds there.
        with tracing(TracingContext(mode)), torch.no_grad():
            return compile_fx(module, examples, config_patches={"freezing": True})

    def hold_against_eager(self, inputs: tuple[Any, ...]) -> None:
        found, again = self(*inputs), self(*inputs)
        expected = self.original(*inputs)
        problem = difference(expected, found, lambda: in_double(self.original)(*widened(inputs)), is_whole=True)
        if problem is None and other_layout(expected, found):
            problem = "its output is laid out in memory as eager's is not"
        if problem is None and shares_memory(expected, inputs) != shares_memory(found, inputs):
            problem = "its output shares memory with an input where eager's does not, or does not"
        if problem is None and shares_memory(found, again):
            problem = "an output is a constant, which the program could change"
        if problem is not None:
            raise CannotFreeze(problem)


def _attribute(module: torch.fx.GraphModule, path: str) -> Any:
    value: Any = module
    for part in path.split("."):
        value = getattr(value, part)
    return value
