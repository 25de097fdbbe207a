"""What TorchInductor would launch on a GPU, asked of its own scheduler on a machine without one.

Inputs are fake CUDA tensors and the questions Inductor asks about the device are answered for one
fixed GPU, so lowering and fusion run as they would there; compilation stops before anything is
compiled for a device. Counts are kernels of the schedule: an external call (convolution, matrix
product) is one, although the library behind it may launch several.
"""

from __future__ import annotations

import contextlib
import logging
import sys
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import torch
import torch._dynamo.device_interface as device_interface
import torch._inductor.config as inductor_config
from torch._inductor import graph as inductor_graph
from torch._inductor.compile_fx import compile_fx
from torch._inductor.ir import MultiOutput
from torch._inductor.scheduler import NopKernelSchedulerNode
from torch._inductor.fx_passes import fuse_attention, joint_graph, misc_patterns, pad_mm
from torch._subclasses import FakeTensorMode, fake_tensor
from torch.utils._python_dispatch import TorchDispatchMode

DEVICE = SimpleNamespace(
    name="NVIDIA H200",
    major=9,
    minor=0,
    total_memory=150 << 30,
    multi_processor_count=132,
    max_threads_per_multi_processor=2048,
    max_threads_per_block=1024,
    regs_per_multiprocessor=65536,
    warp_size=32,
    L2_cache_size=60 << 20,
    shared_memory_per_block=49152,
    shared_memory_per_block_optin=232448,
    shared_memory_per_multiprocessor=233472,
    gcnArchName="",
    is_integrated=0,
    memory_bus_width=6144,
    memory_clock_rate=3201000,
    clock_rate=1980000,
)


class OnCpu(TorchDispatchMode):
    """Computes on the CPU what was meant for the GPU: constants that the compiler folds."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = dict(kwargs or {})
        if kwargs.get("device") is not None:
            kwargs["device"] = torch.device("cpu")
        return func(*args, **kwargs)


def fold_on_cpu(deduce: Callable[..., Any]) -> Callable[..., Any]:
    def deduce_value(folder: Any, node: Any) -> Any:
        with OnCpu():
            return deduce(folder, node)

    return deduce_value


class ScheduleKnown(Exception):
    """Raised once the schedule has been read: nothing after it is wanted."""


@contextlib.contextmanager
def no_device(*_: object) -> Iterator[None]:
    yield


def on_cpu(register: Callable[..., Any]) -> Callable[..., Any]:
    """Pattern tables trace small examples; which device those live on does not matter."""
    return lambda *_: register(torch.device("cpu"))


def pretend_gpu() -> None:
    """Answer Inductor's questions about the device. Affects the whole process."""
    answers = {
        "is_available": lambda: True,
        "current_device": lambda: 0,
        "device_count": lambda: 1,
        "get_device_properties": lambda *_, **__: DEVICE,
        "get_compute_capability": lambda *_: 90,
        "synchronize": lambda *_: None,
        "set_device": lambda *_: None,
        "exchange_device": lambda *_: 0,
        "maybe_exchange_device": lambda *_: 0,
        "is_bf16_supported": lambda *_, **__: True,
    }
    for name, answer in answers.items():
        setattr(device_interface.CudaInterface, name, staticmethod(answer))
        if hasattr(torch.cuda, name):
            setattr(torch.cuda, name, answer)
    worker = device_interface.CudaInterface.Worker
    worker.get_device_properties = staticmethod(answers["get_device_properties"])
    worker.current_device = staticmethod(answers["current_device"])
    torch.cuda.get_device_capability = lambda *_: (DEVICE.major, DEVICE.minor)
    torch.cuda.get_device_name = lambda *_: DEVICE.name
    torch.cuda.get_rng_state = lambda *_: torch.zeros(16, dtype=torch.uint8)
    torch.cuda.set_rng_state = lambda *_: None
    torch.cuda.is_initialized = lambda: False
    torch.cuda._lazy_init = lambda: None
    torch.cuda.device = no_device
    # Dynamo would otherwise ask the driver for its current stream.
    torch.accelerator.is_available = lambda: False
    torch.Tensor.contiguous = contiguous
    torch.Tensor.__getitem__ = get_item
    torch.Tensor.__setitem__ = set_item
    constants = joint_graph.UniformValueConstantFolder
    constants._deduce_value = fold_on_cpu(constants._deduce_value)
    fake_tensor.init_gpu_context = lambda *_: None
    fuse_attention._sfdp_init = on_cpu(fuse_attention._sfdp_init)
    pad_mm._pad_mm_init = on_cpu(pad_mm._pad_mm_init)
    misc_patterns._misc_patterns_init = on_cpu(misc_patterns._misc_patterns_init)
    inductor_config.force_disable_caches = True
    inductor_config.compile_threads = 1
    # Every compilation ends in `ScheduleKnown`; that is no news.
    torch._logging.set_logs(all=logging.ERROR)


def contiguous(
    tensor: torch.Tensor, memory_format: torch.memory_format = torch.contiguous_format
) -> torch.Tensor:
    """`Tensor.contiguous` without the switch to the tensor's device that the original begins with."""
    if tensor.is_contiguous(memory_format=memory_format):
        return tensor
    return tensor.clone(memory_format=memory_format)


def basic_view(tensor: torch.Tensor, index: Any) -> torch.Tensor | None:
    """`tensor[index]` for integers, slices, `None` and `...`; None where the index holds a tensor."""
    parts = list(index) if isinstance(index, tuple) else [index]
    if any(isinstance(part, (torch.Tensor, list, bool)) for part in parts):
        return None
    missing = tensor.dim() - sum(part is not None and part is not Ellipsis for part in parts)
    if Ellipsis in parts:
        at = parts.index(Ellipsis)
        parts[at : at + 1] = [slice(None)] * missing
    dim = 0
    for part in parts:
        if part is None:
            tensor = tensor.unsqueeze(dim)
            dim += 1
        elif isinstance(part, slice):
            whole = part.start is None and part.stop is None and part.step is None
            if not whole:
                stop = sys.maxsize if part.stop is None else part.stop
                tensor = torch.ops.aten.slice(tensor, dim, part.start or 0, stop, part.step or 1)
            dim += 1
        else:
            tensor = tensor.select(dim, part)
    return tensor


def get_item(tensor: torch.Tensor, index: Any) -> torch.Tensor:
    """`Tensor.__getitem__`, which like `contiguous` begins with a switch of device."""
    view = basic_view(tensor, index)
    return original_get_item(tensor, index) if view is None else view


def set_item(tensor: torch.Tensor, index: Any, value: Any) -> None:
    view = basic_view(tensor, index)
    if view is None:
        original_set_item(tensor, index, value)
    elif isinstance(value, torch.Tensor):
        view.copy_(value)
    else:
        view.fill_(value)


original_get_item = torch.Tensor.__getitem__
original_set_item = torch.Tensor.__setitem__


def causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def scheduled_kernels(function: Callable[..., Any], inputs: list[Any]) -> list[list[str]]:
    """The kernels of a function's schedule, each as the names of the aten ops it computes.

    `inputs` holds tensors (only shape, stride and dtype are used) and Python numbers.
    """
    kernels: list[list[str]] = []

    def read(lowered: Any) -> None:
        for node in lowered.scheduler.nodes:
            # The parts of a result that has several are no kernels of their own.
            if isinstance(node, NopKernelSchedulerNode) or isinstance(node.node, MultiOutput):
                continue
            if node.get_device() is not None and node.get_device().type != "cuda":
                continue
            kernels.append(origins(node))

    schedule(function, inputs, read)
    return kernels


def generated_code(function: Callable[..., Any], inputs: list[Any]) -> list[str]:
    """The Python files that TorchInductor would write for a function, Triton kernels and their launches."""
    texts: list[str] = []

    def read(lowered: Any) -> None:
        lowered.scheduler.codegen()
        text, _ = lowered.wrapper_code.generate(lowered.is_inference)
        texts.append(text.value)

    schedule(function, inputs, read)
    return texts


def schedule(function: Callable[..., Any], inputs: list[Any], read: Callable[[Any], None]) -> None:
    """Hands every graph of a function to `read` as soon as its kernels are known."""

    def read_schedule(lowered: Any) -> None:
        lowered.init_wrapper_code()
        lowered._update_scheduler()
        read(lowered)
        raise ScheduleKnown

    def backend(module: torch.fx.GraphModule, examples: list[Any]) -> Callable[..., Any]:
        try:
            compile_fx(module, examples)
        except Exception as error:
            if not any(isinstance(cause, ScheduleKnown) for cause in causes(error)):
                raise

        def run(*arguments: Any) -> Any:
            with mode:
                return module(*arguments)

        return run

    mode = FakeTensorMode()
    with mode:
        fakes = [
            torch.empty_strided(value.size(), value.stride(), dtype=value.dtype, device="cuda")
            if isinstance(value, torch.Tensor)
            else value
            for value in inputs
        ]
    torch._dynamo.reset()
    original = inductor_graph.GraphLowering.codegen
    inductor_graph.GraphLowering.codegen = read_schedule
    try:
        with torch.no_grad():
            torch.compile(function, backend=backend, dynamic=False)(*fakes)
    finally:
        inductor_graph.GraphLowering.codegen = original


def origins(node: Any) -> list[str]:
    """The aten ops a scheduled kernel computes, in order of appearance."""
    found: list[str] = []
    for part in node.get_nodes():
        for origin in sorted(part.node.get_origins(), key=lambda fx_node: fx_node.name):
            if origin.op == "call_function" and origin.name not in found:
                found.append(origin.name)
    return found
