"""A graph that is loaded: its text compiled, its replaced nodes bound to plans, its draws of inputs staged."""

import statistics
import time
from typing import Any, Callable

import torch

from passnet.worker.clock import device_seconds
from passnet.worker.compilers import begin_step, compiled, own_copies, reuses_outputs
from passnet.worker.contents import random_rolls, rolled
from passnet.worker.plans import Plan, PlanCall, Runner, poison_memory
from passnet.worker.tensors import flatten

# Sets of a plan's buffers that are poisoned before a timed call. The allocator hands freed memory out again; which block it
# takes depends on what else the graph allocates, so several are made ready.
POISONED_SETS = 3
# Calls from which the device's own time is taken, and series of calls from which the host's is.
DEVICE_CALLS = 9
# Short enough that no queue fills up.
SERIES = 20
# More than any GPU's cache holds.
CACHE_BYTES = 256 << 20


def copied(inputs: list[Any]) -> list[Any]:
    return [value.clone() if isinstance(value, torch.Tensor) else value for value in inputs]


def flattened(result: Any) -> list[torch.Tensor]:
    outputs: list[torch.Tensor] = []
    flatten(result, outputs)
    return outputs


class Graph:
    def __init__(
        self,
        text: str,
        plans: int,
        compiler: dict[str, str],
        device: torch.device,
        ask: Callable[[int, tuple[Any, ...]], Plan],
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
        self.forward = compiled(scope["GraphModule"](), compiler, device, writes_inputs)
        self.reuses_outputs = reuses_outputs(compiler)
        # By number, on the device.
        self.draws: dict[int, list[Any]] = {}

    def run(self, inputs: list[Any], seed: int) -> list[torch.Tensor]:
        # Only the slow way poisons fresh memory by itself; the graph finds what it calls in its scope.
        self.scope.update(self.plan_calls)
        self.begin_call()
        try:
            self.seed(seed)
            result = self.forward(*inputs)
        finally:
            self.scope.update(self.functions)
        self.synchronize()
        return self.outputs_of(result, inputs)

    def begin_call(self) -> None:
        if self.reuses_outputs:
            begin_step()

    def outputs_of(self, result: Any, inputs: list[Any]) -> list[torch.Tensor]:
        """What a call gave, to be kept while others follow."""
        outputs = flattened(result)
        return own_copies(outputs, inputs) if self.reuses_outputs else outputs

    def seed(self, seed: int) -> None:
        """As `torch.manual_seed`, which takes two hundred microseconds to ask after every kind of device."""
        torch.default_generator.manual_seed(seed)
        if self.device.type == "cuda":
            torch.cuda.manual_seed(seed)

    def content(self, described: dict[str, Any], given: list[Any] | None) -> list[Any]:
        """Fresh tensors with values that no earlier call had."""
        return copied(given) if given is not None else rolled(self.draws[described["draw"]], described["by"])

    def timed_call(self, inputs: list[Any], seed: int) -> tuple[float, list[torch.Tensor]]:
        """One call, its seconds and what it gave."""
        self.seed(seed)
        self.poison_freed_memory()
        self.begin_call()
        self.synchronize()
        started = time.perf_counter()
        result = self.forward(*inputs)
        self.synchronize()
        seconds = time.perf_counter() - started
        return seconds, self.outputs_of(result, inputs)

    def poison_freed_memory(self) -> None:
        """What plans get uninitialised must tell nothing about earlier calls: their buffers are allocated, poisoned and freed
        ahead of the clock, and the allocator hands the same memory out again."""
        plans = [plan for call in self.plan_calls.values() for _, plan in call.plans if isinstance(plan, Plan)]
        sets = [plan.uninitialised() for plan in plans for _ in range(POISONED_SETS)]
        for tensor in (tensor for tensors in sets for tensor in tensors):
            poison_memory(tensor)

    def host_seconds(self, draw: list[Any], seed: int) -> float | None:
        """Until a call returns, its work queued: the median of short series of calls that nothing waits for."""
        if self.device.type != "cuda":
            return None
        inputs = copied(draw)
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

    def device_seconds(self, draw: list[Any], seed: int, cold: bool) -> float | None:
        """The device at work; `cold` with nothing of the inputs left in its cache."""
        if self.device.type != "cuda":
            return None
        times = []
        cache = torch.empty(CACHE_BYTES, dtype=torch.uint8, device=self.device) if cold else None
        for _ in range(DEVICE_CALLS):
            inputs = rolled(draw, random_rolls(draw))
            self.seed(seed)
            self.poison_freed_memory()
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
