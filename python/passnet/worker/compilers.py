"""What a graph is held against: TorchInductor in its modes, and eager's launches recorded in a CUDA graph."""

from typing import Any, Callable, NamedTuple

import torch

# Modes of TorchInductor whose outputs lie where the next call writes its own.
CUDA_GRAPH_MODES = ("reduce-overhead", "max-autotune")
# Calls before a recording: libraries choose their algorithms and take their memory in the first ones.
WARM_UP = 3


class Recording(NamedTuple):
    graph: Any
    inputs: list[torch.Tensor]
    outputs: Any


class Captured:
    """Eager in a CUDA graph. Launches are recorded once for each kind of inputs; a call copies its inputs to where the
    recording reads them, which is part of its price, and replays it. Outputs lie where the next call writes its own."""

    def __init__(self, forward: Callable[..., Any], device: torch.device, writes_inputs: bool) -> None:
        self.forward, self.device, self.writes_inputs = forward, device, writes_inputs
        self.recordings: dict[tuple, Recording] = {}

    def __call__(self, *inputs: Any) -> Any:
        kind = tuple((v.shape, v.stride(), v.dtype) if isinstance(v, torch.Tensor) else v for v in inputs)
        recording = self.recordings.get(kind)
        if recording is None:
            recording = self.recordings[kind] = self.record(inputs)
        given = [value for value in inputs if isinstance(value, torch.Tensor)]
        if given:
            torch._foreach_copy_(recording.inputs, given)
        recording.graph.replay()
        if self.writes_inputs and given:
            torch._foreach_copy_(given, recording.inputs)
        return recording.outputs

    def record(self, inputs: tuple[Any, ...]) -> Recording:
        held = [value.clone() if isinstance(value, torch.Tensor) else value for value in inputs]
        # A recording must not change what the call that it serves draws.
        state = torch.cuda.get_rng_state(self.device)
        aside = torch.cuda.Stream(self.device)
        aside.wait_stream(torch.cuda.current_stream(self.device))
        with torch.cuda.stream(aside):
            for _ in range(WARM_UP):
                self.forward(*held)
        torch.cuda.current_stream(self.device).wait_stream(aside)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            outputs = self.forward(*held)
        torch.cuda.set_rng_state(state, self.device)
        return Recording(graph, [value for value in held if isinstance(value, torch.Tensor)], outputs)


def compiled(
    module: torch.nn.Module, compiler: dict[str, str], device: torch.device, writes_inputs: bool
) -> Callable[..., Any]:
    """What a call of the graph is."""
    name = compiler["name"]
    if name == "eager":
        return module.forward
    if name == "inductor":
        return torch.compile(module, backend="inductor", mode=compiler["mode"])
    if name == "cudagraph":
        return Captured(module.forward, device, writes_inputs)
    raise ValueError(f"there is no compiler {name!r}")


def reuses_outputs(compiler: dict[str, str]) -> bool:
    """Whether a call overwrites what the last one gave."""
    return compiler["name"] == "cudagraph" or compiler.get("mode") in CUDA_GRAPH_MODES


def begin_step() -> None:
    """Tells TorchInductor that nobody reads what the last call gave."""
    torch.compiler.cudagraph_mark_step_begin()


def own_copies(outputs: list[torch.Tensor], inputs: list[Any]) -> list[torch.Tensor]:
    """The outputs in memory of their own, which they share as before; what lies in an input stays there."""
    storages = {v.untyped_storage().data_ptr() for v in inputs if isinstance(v, torch.Tensor) and v.numel()}
    copies: dict[int, Any] = {}
    owned = []
    for output in outputs:
        storage = output.untyped_storage()
        address = storage.data_ptr()
        if not output.numel() or address in storages:
            owned.append(output)
            continue
        if address not in copies:
            copies[address] = storage.clone()
        copy = torch.empty(0, dtype=output.dtype, device=output.device)
        owned.append(copy.set_(copies[address], output.storage_offset(), output.shape, output.stride()))
    return owned
