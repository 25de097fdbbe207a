"""A graph that is loaded: its text compiled, its replaced nodes bound to plans, its draws of inputs staged."""

import statistics
import time
from collections import deque
from typing import Any, Callable

import torch

from passnet.worker.clock import device_seconds
from passnet.worker.plans import Plan, PlanCall, Runner
from passnet.worker.tensors import flatten, same_bits

# Copies of a draw, all in different places, which calls take in turn.
PLACES = 3
# Draws larger than this are copied for every call instead.
MOST_BYTES = 1 << 28
# Calls from which the device's own time is taken, and series of calls from which the host's is.
DEVICE_CALLS = 9
# Short enough that no queue fills up.
SERIES = 20
# More than any GPU's cache holds.
CACHE_BYTES = 256 << 20


class Draw:
    """Inputs of timed calls, and what a call on them must give."""

    def __init__(self, inputs: list[Any], expected: list[torch.Tensor]) -> None:
        self.expected = expected
        tensors = [value for value in inputs if isinstance(value, torch.Tensor)]
        is_small = sum(tensor.numel() * tensor.element_size() for tensor in tensors) <= MOST_BYTES
        self.places = deque([inputs, *(copied(inputs) for _ in range(PLACES - 1 if is_small else 0))])

    def take(self, copy: bool) -> list[Any]:
        """The inputs somewhere else than last time; as a copy of its own where the call will change them."""
        self.places.rotate()
        return copied(self.places[0]) if copy or len(self.places) == 1 else self.places[0]


def copied(inputs: list[Any]) -> list[Any]:
    return [value.clone() if isinstance(value, torch.Tensor) else value for value in inputs]


class Graph:
    def __init__(
        self,
        text: str,
        plans: int,
        compiler: str,
        device: torch.device,
        ask: Callable[[int, list[Any]], Plan],
        runner: Runner | None,
        writes_inputs: bool = False,
    ) -> None:
        self.device = device
        self.writes_inputs = writes_inputs
        self.plan_calls = {f"passnet_plan_{index}": PlanCall(index, ask, runner) for index in range(plans)}
        self.functions = {name: call.function() for name, call in self.plan_calls.items()}
        self.scope = scope = dict(self.functions)
        # The text is printed by the Rust side from its own table of operations; nothing else is compiled here.
        exec(compile(text, f"<graph {id(self)}>", "exec"), scope)
        module = scope["GraphModule"]()
        if compiler == "inductor":
            module = torch.compile(module, backend="inductor")
        self.forward = module.forward if compiler == "eager" else module
        self.draws: dict[int, Draw] = {}

    def run(self, inputs: list[Any], seed: int, poison: bool) -> list[torch.Tensor]:
        # Only the slow way poisons fresh memory; the graph finds what it calls in its scope.
        for name, call in self.plan_calls.items():
            call.poison = poison
            self.scope[name] = call if poison else self.functions[name]
        try:
            self.seed(seed)
            result = self.forward(*inputs)
        finally:
            for name, call in self.plan_calls.items():
                call.poison = False
                self.scope[name] = self.functions[name]
        outputs: list[torch.Tensor] = []
        flatten(result, outputs)
        self.synchronize()
        return outputs

    def seed(self, seed: int) -> None:
        """As `torch.manual_seed`, which takes two hundred microseconds to ask after every kind of device."""
        torch.default_generator.manual_seed(seed)
        if self.device.type == "cuda":
            torch.cuda.manual_seed(seed)

    def stage(self, draw: int, inputs: list[Any], expected: list[torch.Tensor]) -> None:
        self.draws[draw] = Draw(inputs, expected)

    def timed_call(self, draw: Draw, is_checked: bool, seed: int) -> tuple[float, int | None]:
        """One call on a draw: its seconds, and the first output that is not what it must be."""
        inputs = draw.take(self.writes_inputs)
        self.seed(seed)
        self.synchronize()
        started = time.perf_counter()
        result = self.forward(*inputs)
        self.synchronize()
        seconds = time.perf_counter() - started
        if not is_checked or not draw.expected:
            return seconds, None
        outputs: list[torch.Tensor] = []
        flatten(result, outputs)
        if len(outputs) != len(draw.expected):
            return seconds, min(len(outputs), len(draw.expected))
        pairs = enumerate(zip(outputs, draw.expected, strict=True))
        return seconds, next((i for i, (one, two) in pairs if not same_bits(one, two)), None)

    def host_seconds(self, draw: Draw, seed: int) -> float | None:
        """Until a call returns, its work queued: the median of short series of calls that nothing waits for."""
        if self.device.type != "cuda":
            return None
        inputs = draw.take(self.writes_inputs)
        self.seed(seed)
        times = []
        for _ in range(DEVICE_CALLS):
            self.synchronize()
            started = time.perf_counter()
            for _ in range(SERIES):
                self.forward(*inputs)
            times.append((time.perf_counter() - started) / SERIES)
        self.synchronize()
        return statistics.median(times)

    def device_seconds(self, draw: Draw, seed: int, cold: bool) -> float | None:
        """The device at work; `cold` with nothing of the inputs left in its cache."""
        if self.device.type != "cuda":
            return None
        times = []
        cache = torch.empty(CACHE_BYTES, dtype=torch.uint8, device=self.device) if cold else None
        for _ in range(DEVICE_CALLS):
            inputs = draw.take(self.writes_inputs)
            self.seed(seed)
            if cache is not None:
                cache.zero_()
            times.append(device_seconds(self.device, lambda inputs=inputs: self.forward(*inputs)))
        return statistics.median(times)

    def alias(self, output: torch.Tensor, inputs: list[Any]) -> int | None:
        """The input whose memory an output shares."""
        address = output.untyped_storage().data_ptr() if output.numel() else 0
        for index, value in enumerate(inputs):
            if isinstance(value, torch.Tensor) and value.numel() and value.untyped_storage().data_ptr() == address:
                return index
        return None

    def synchronize(self) -> None:
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)
