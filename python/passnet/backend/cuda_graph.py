"""Whole graphs recorded and replayed: the launches of a call cost the host next to nothing.

A recording reads its inputs where they lay when it was made. Parameters and buffers stay where they are, so they are read in
place; other inputs are copied to where the recording reads them. Where a parameter has moved, or an input has another size,
another recording is made. All recordings of a device share one pool of memory, so they run one after the other, whatever thread
or stream asks. What a recording leaves is copied: the next call writes over it. What cannot be recorded runs as it is.
"""

from __future__ import annotations

import contextlib
import functools
import threading
import warnings
import weakref
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import torch
import torch.fx

from passnet.worker.compilers import WARM_UP, own_copies
from passnet.worker.tensors import unexpanded

# Recordings of one graph; more kinds of inputs are not recorded.
MOST = 16


class Recording(NamedTuple):
    graph: Any
    # Where parameters lie; nothing for other inputs.
    places: list[int | None]
    # What the other inputs look like.
    looks: list[Any]
    # The tensors that are copied in, and where to; of those that are expanded, what they expand.
    inputs: list[int]
    held: list[torch.Tensor]
    expanded: frozenset[int]
    outputs: Any

    def taken_from(self, inputs: list[Any]) -> list[torch.Tensor]:
        """What a call copies in."""
        return [unexpanded(inputs[index]) if index in self.expanded else inputs[index] for index in self.inputs]


def static_inputs(graph: torch.fx.Graph) -> list[bool]:
    """For every input, whether it is a parameter or a buffer, which keeps its place."""

    def is_static(node: torch.fx.Node) -> bool:
        example = node.meta.get("example_value")
        if isinstance(example, torch.nn.Parameter) or getattr(example, "_dynamo_static_input_type", None):
            return True
        name = str(node.target)
        return name.startswith("L_self_") and ("_parameters_" in name or "_buffers_" in name)

    return [is_static(node) for node in graph.nodes if node.op == "placeholder"]


def _same_places(tensors: list[Any], places: list[int | None], indices: list[int]) -> bool:
    return all(tensors[index].data_ptr() == places[index] for index in indices)


# A model has hundreds of parameters, and every call looks where they lie: PyTorch's own recordings have a function for that.
same_places = getattr(torch._C, "_tensors_data_ptrs_at_indices_equal", _same_places)


def look(value: Any) -> Any:
    return (value.shape, value.stride(), value.dtype) if isinstance(value, torch.Tensor) else value


class Lane:
    """What recordings share: a pool of memory, the stream that they are made on, and the order in which they run."""

    def __init__(self, device: torch.device) -> None:
        self.device = device
        # One call at a time. A site that becomes eager does not wait for it: it has a lock that such a call may want.
        self.lock = threading.RLock()
        self.handle: Any = None
        self.users: list[weakref.ref[Any]] = []
        # Where the last one was replayed.
        self.last: int | None = None

    @functools.cached_property
    def stream(self) -> Any:
        """Libraries keep workspaces for every stream that they saw: one for all recordings is enough."""
        return torch.cuda.Stream(self.device)

    def pool(self) -> Any:
        """The pool; a new one where no recording lives in the old one, of which the allocator may have taken the memory."""
        self.users = [user for user in self.users if user() is not None]
        if self.handle is None or not self.users:
            self.handle = torch.cuda.graph_pool_handle()
        return self.handle

    def follow(self) -> None:
        """What another stream replays must be over."""
        stream = torch._C._cuda_getCurrentRawStream(self.device.index or 0)
        if self.last is not None and self.last != stream:
            earlier = torch.cuda.ExternalStream(self.last, self.device)
            torch.cuda.current_stream(self.device).wait_stream(earlier)
        self.last = stream

    def recorded(self, forward: Callable[..., Any], given: list[Any]) -> tuple[Any, Any]:
        """The launches of a call, and where they leave its outputs."""
        with torch.cuda.device(self.device):
            self.stream.wait_stream(torch.cuda.current_stream(self.device))
            with torch.cuda.stream(self.stream):
                for _ in range(WARM_UP):
                    forward(*given)
            torch.cuda.current_stream(self.device).wait_stream(self.stream)
            graph = torch.cuda.CUDAGraph()
            pool = self.pool()
            with own_workspaces(), torch.cuda.graph(graph, pool=pool, stream=self.stream):
                outputs = forward(*given)
        self.users.append(weakref.ref(graph))
        return graph, outputs


@functools.cache
def shared_lane(device: torch.device) -> Lane:
    return Lane(device)


@contextlib.contextmanager
def own_workspaces() -> Iterator[None]:
    """cuBLAS takes its workspaces in the pool of what is recorded, and leaves them there: one that lies elsewhere could be given
    to somebody else while recordings still write to it, and would stay for each stream beside the pool."""
    torch._C._cuda_clearCublasWorkspaces()
    try:
        yield
    finally:
        torch._C._cuda_clearCublasWorkspaces()


class Recorder:
    def __init__(self, graph: torch.fx.Graph, device: torch.device, lane: Lane | None = None) -> None:
        static = static_inputs(graph)
        self.static = [index for index, is_static in enumerate(static) if is_static]
        self.others = [index for index, is_static in enumerate(static) if not is_static]
        self.device, self.lane = device, lane or shared_lane(device)
        # Of the two fields below; nobody waits for anything under it.
        self.keeping = threading.Lock()
        # The one that was used last comes first.
        self.recordings: list[Recording] = []
        # How often all of them were forgotten.
        self.forgotten = 0
        # Why nothing is recorded.
        self.refused: str | None = None if device.type == "cuda" else "the graph does not compute on a GPU"

    def known(self, inputs: list[Any]) -> Recording | None:
        """Dynamo has seen to it that parameters have the sizes and types that they had."""
        looks = [look(inputs[index]) for index in self.others]
        with self.keeping:
            for at, recording in enumerate(self.recordings):
                if recording.looks == looks and same_places(inputs, recording.places, self.static):
                    if at:
                        self.recordings.insert(0, self.recordings.pop(at))
                    return recording
        return None

    def __call__(self, forward: Callable[..., Any], inputs: tuple[Any, ...]) -> Any:
        if self.refused is not None:
            return forward(*inputs)
        given = list(inputs)
        with self.lane.lock:
            recording = self.known(given) or self.made(forward, given)
            if recording is not None:
                self.lane.follow()
                if recording.inputs:
                    torch._foreach_copy_(recording.held, recording.taken_from(given))
                recording.graph.replay()
                return copied(recording.outputs)
        return forward(*inputs)

    def made(self, forward: Callable[..., Any], inputs: list[Any]) -> Recording | None:
        """A new recording, where there may be one more."""
        forgotten = self.forgotten
        recording = self.record(forward, inputs) if len(self.recordings) < MOST else None
        return recording if recording is not None and self.keep(recording, forgotten) else None

    def keep(self, recording: Recording, forgotten: int) -> bool:
        """A recording of what a site did before it became another must not be replayed."""
        with self.keeping:
            if self.forgotten != forgotten:
                return False
            self.recordings.insert(0, recording)
            return True

    def forget(self) -> None:
        with self.keeping:
            self.recordings, self.forgotten = [], self.forgotten + 1

    def record(self, forward: Callable[..., Any], inputs: list[Any]) -> Recording | None:
        device = self.device
        if any(isinstance(v, torch.Tensor) and not v.is_cuda for v in inputs):
            return self.refuse("an input lies on the CPU")
        moved = [index for index in self.others if isinstance(inputs[index], torch.Tensor)]
        places: list[int | None] = [None] * len(inputs)
        for index in self.static:
            places[index] = inputs[index].data_ptr()
        given, held = list(inputs), []
        expanded = frozenset(index for index in moved if unexpanded(inputs[index]) is not inputs[index])
        for index in moved:
            shape, strides, dtype = inputs[index].shape, inputs[index].stride(), inputs[index].dtype
            given[index] = torch.empty_strided(shape, strides, dtype=dtype, device=device)
            held.append(unexpanded(given[index]))
        # A recording must not change what the call that it serves draws.
        state = torch.cuda.get_rng_state(device)
        try:
            for copy, index in zip(held, moved):
                copy.copy_(unexpanded(inputs[index]))
            graph, outputs = self.lane.recorded(forward, given)
        except RuntimeError as error:
            torch.cuda.synchronize(device)
            return self.refuse(str(error).splitlines()[0])
        finally:
            torch.cuda.set_rng_state(state, device)
        looks = [look(inputs[index]) for index in self.others]
        return Recording(graph, places, looks, moved, held, expanded, outputs)

    def refuse(self, reason: str) -> None:
        self.refused = reason
        warnings.warn(f"passnet: not recorded in a CUDA graph: {reason}", stacklevel=4)


def copied(outputs: Any) -> Any:
    """The outputs in memory of their own, which they share as before."""
    leaves = [value for value in outputs if isinstance(value, torch.Tensor)]
    if len(leaves) == 1 and leaves[0].is_contiguous():
        owned = iter([leaves[0].clone()])
    else:
        owned = iter(own_copies(leaves, []))
    return tuple(next(owned) if isinstance(value, torch.Tensor) else value for value in outputs)
