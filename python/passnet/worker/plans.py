"""Replaced nodes: launch plans replayed by the native runner on torch's memory and torch's current stream."""

import ctypes
from collections.abc import Sequence
from typing import Any, Callable

import torch

from passnet.worker.quick import QuickCalls, empty_strided, look_from
from passnet.worker.tensors import DTYPES

# Of the runner's interface.
VERSION = 2


class PlanError(Exception):
    """A plan could not be made."""


class LaunchError(PlanError):
    """A plan did not run to its end."""


class RemoteError(Exception):
    """The other side has no plan, or what it ran for us failed; it says of what kind that is."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


class RemotePass:
    """In the place of a plan: a wrapper that runs elsewhere, in a sandbox."""

    def __init__(self, call: Callable[[tuple[Any, ...]], Any]) -> None:
        self.call = call

    def __call__(self, arguments: tuple[Any, ...]) -> Any:
        return self.call(arguments)

    def add_to(self, call: int, arguments: tuple[Any, ...]) -> None:
        """There is nothing to replay."""


class Runner:
    """The native library."""

    def __init__(self, path: str) -> None:
        library = ctypes.CDLL(path)
        pointer, size = ctypes.c_void_p, ctypes.c_size_t
        library.pn_version.restype = ctypes.c_uint32
        library.pn_plan_cpu.argtypes = [ctypes.c_char_p, size]
        library.pn_plan_cpu.restype = pointer
        library.pn_plan_cuda.argtypes = [ctypes.c_char_p, size, ctypes.c_char_p, size]
        library.pn_plan_cuda.restype = pointer
        library.pn_plan_run.argtypes = [pointer, pointer, size, size, size, ctypes.c_uint64]
        library.pn_plan_run.restype = ctypes.c_int32
        library.pn_error.argtypes = [ctypes.c_char_p, size]
        library.pn_error.restype = size
        library.pn_plan_free.argtypes = [pointer]
        library.pn_plan_free.restype = None
        if library.pn_version() != VERSION:
            raise PlanError(f"the runner {path} has version {library.pn_version()}, not {VERSION}")
        self.library = library
        self.run = library.pn_plan_run
        self.quick = QuickCalls(path, LaunchError)

    def error(self) -> str:
        buffer = ctypes.create_string_buffer(4096)
        length = self.library.pn_error(buffer, len(buffer))
        return buffer.raw[:length].decode(errors="replace")

    def load(self, text: bytes, cubins: bytes | None) -> int:
        if cubins is None:
            handle = self.library.pn_plan_cpu(text, len(text))
        else:
            handle = self.library.pn_plan_cuda(text, len(text), cubins, len(cubins))
        if not handle:
            raise PlanError(self.error())
        return handle


class Plan:
    """One plan, ready: only addresses change from call to call."""

    def __init__(
        self,
        runner: Runner,
        handle: int,
        plan: dict[str, Any],
        device: torch.device,
        arguments: Sequence[dict[str, Any]] = (),
        gives_tuple: bool = False,
        filled: frozenset[int] = frozenset(),
    ) -> None:
        """`filled` names uninitialised buffers that hold the same bytes in every call all the same."""
        self.runner, self.handle, self.device = runner, handle, device
        self.buffers = plan["buffers"]
        self.steps = plan["steps"]
        self.addresses = (ctypes.c_uint64 * len(self.buffers))()
        self.inputs: list[tuple[int, int]] = []
        self.fresh: list[tuple[int, Allocation, bool]] = []
        whole = {}
        for view in plan["returns"]:
            buffer = self.buffers[view["buffer"]]
            if view["offset"] == 0 and view["dtype"] == buffer["dtype"] and is_all_of(view, buffer, arguments):
                whole.setdefault(view["buffer"], view)
        for index, buffer in enumerate(self.buffers):
            init = buffer["init"]
            if isinstance(init, dict) and "input" in init:
                self.inputs.append((index, init["input"]))
                continue
            dtype = DTYPES[buffer["dtype"]]
            view = whole.get(index)
            shape, stride = (view["shape"], view["stride"]) if view else ([buffer["elements"]], [1])
            allocate = allocation(shape, stride, dtype, device)
            if index in filled:
                allocate = poisoned, allocate
            self.fresh.append((index, allocate, init == "uninitialized"))
        self.returns = [
            (view["buffer"], None if whole.get(view["buffer"]) is view else view) for view in plan["returns"]
        ]
        self.is_sequence = gives_tuple or len(self.returns) != 1
        self.ranges = list(step_ranges(self.steps, device))

    def __call__(self, arguments: tuple[Any, ...]) -> Any:
        tensors = self.place(arguments)
        self.launch(tensors)
        results = [tensors[buffer] if view is None else look(tensors[buffer], view) for buffer, view in self.returns]
        return tuple(results) if self.is_sequence else results[0]

    def place(self, arguments: tuple[Any, ...]) -> list[torch.Tensor | None]:
        """The plan's buffers, their addresses noted. What the plan does not fill itself is poisoned."""
        addresses = self.addresses
        tensors: list[torch.Tensor | None] = [None] * len(self.buffers)
        for index, argument in self.inputs:
            tensor = arguments[argument]
            tensors[index] = tensor
            addresses[index] = tensor.data_ptr()
        for index, (allocate, with_arguments), uninitialised in self.fresh:
            tensor = allocate(*with_arguments)
            if uninitialised:
                poison_memory(tensor)
            tensors[index] = tensor
            addresses[index] = tensor.data_ptr()
        return tensors

    def launch(self, tensors: list[torch.Tensor | None]) -> None:
        """Runs the steps on buffers that were placed last."""
        addresses = self.addresses
        stream = torch._C._cuda_getCurrentRawStream(self.device.index or 0) if self.device.type == "cuda" else 0
        for first, last in self.ranges:
            if last > first or first == 0:
                if self.runner.run(self.handle, addresses, len(addresses), first, last, stream) != 0:
                    raise LaunchError(self.runner.error())
            if last < len(self.steps):
                self.torch_step(self.steps[last], tensors)

    def uninitialised(self) -> list[torch.Tensor]:
        """Tensors as the plan allocates them and does not fill them."""
        return [allocate(*with_arguments) for _, (allocate, with_arguments), is_bare in self.fresh if is_bare]

    def __del__(self) -> None:
        self.runner.library.pn_plan_free(self.handle)

    def add_to(self, call: int, arguments: tuple[Any, ...]) -> None:
        """Teaches a native call this plan, where it can replay it alone: no copies between launches, no results that read a
        buffer as another type, nothing but tensors and plain values as arguments."""
        plain = (bool, int, float, str, type(None), torch.device, torch.dtype)
        views = [view for _, view in self.returns if view is not None]
        quickest = look_from()
        if (
            len(self.ranges) != 1
            or any(view["dtype"] != self.buffers[view["buffer"]]["dtype"] for view in views)
            or (quickest is None and any(view["offset"] != 0 for view in views))
            or not all(type(argument) is torch.Tensor or type(argument) in plain for argument in arguments)
        ):
            return
        inputs = dict(self.inputs)
        layout = {
            "buffers": [inputs.get(index) for index in range(len(self.buffers))],
            "returns": [buffer for buffer, _ in self.returns],
            "views": [view is not None for _, view in self.returns],
            "is_sequence": self.is_sequence,
            "steps": len(self.steps),
            "device": (self.device.index or 0) if self.device.type == "cuda" else None,
        }
        fresh = tuple(allocate for _, allocate, _ in self.fresh)
        for view in views:
            layout_of = tuple(view["shape"]), tuple(view["stride"])
            fresh += ((torch.as_strided, layout_of) if quickest is None else (quickest, (*layout_of, view["offset"])),)
        if not self.runner.quick.add(call, self.handle, layout, arguments, fresh):
            raise PlanError(self.runner.error())

    def torch_step(self, step: dict[str, Any], tensors: list[torch.Tensor | None]) -> None:
        """Copies and fills between launches, which torch does on its stream."""
        if "copy" in step:
            copy = step["copy"]
            look(tensors[copy["to"]["buffer"]], copy["to"]).copy_(look(tensors[copy["from"]["buffer"]], copy["from"]))
        elif "fill" in step:
            fill = step["fill"]
            look(tensors[fill["view"]["buffer"]], fill["view"]).fill_(constant(fill["value"]))


def step_ranges(steps: list[dict[str, Any]], device: torch.device):
    """Runs of steps that the runner does itself; on a GPU, torch does the one after each."""
    if device.type != "cuda":
        yield 0, len(steps)
        return
    first = 0
    for index, step in enumerate(steps):
        if "launch" not in step:
            yield first, index
            first = index + 1
    yield first, len(steps)


# A function and its arguments.
Allocation = tuple[Callable[..., torch.Tensor], tuple[Any, ...]]


def allocation(shape: list[int], stride: list[int], dtype: torch.dtype, device: torch.device) -> Allocation:
    arguments = tuple(shape), tuple(stride), dtype
    quickest = empty_strided(device)
    if quickest is not None:
        return quickest, arguments
    return lambda shape, stride, dtype: torch.empty_strided(shape, stride, dtype=dtype, device=device), arguments


def poisoned(allocate: Callable[..., torch.Tensor], arguments: tuple[Any, ...]) -> torch.Tensor:
    tensor = allocate(*arguments)
    poison_memory(tensor)
    return tensor


def is_all_of(view: dict[str, Any], buffer: dict[str, Any], arguments: Sequence[dict[str, Any]]) -> bool:
    """Whether a view is what its buffer is made as, or the argument that it is: an argument is laid out already."""
    init = buffer["init"]
    if not (isinstance(init, dict) and "input" in init):
        return is_whole(view, buffer["elements"])
    given = arguments[init["input"]]["tensor"]
    return view["shape"] == given["shape"] and view["stride"] == given["stride"]


def is_whole(view: dict[str, Any], elements: int) -> bool:
    """Whether a view without gaps covers its buffer, so that the buffer can be made in that shape at once."""
    reached, count = 1, 1
    for size, stride in zip(view["shape"], view["stride"], strict=True):
        if size == 0 or stride < 0:
            return False
        reached += (size - 1) * stride
        count *= size
    return reached == count == elements


def poison_memory(tensor: torch.Tensor) -> None:
    """All ones is NaN in every float type; a bool must stay a bool."""
    flat = tensor.as_strided((tensor.untyped_storage().nbytes() // tensor.dtype.itemsize,), (1,))
    flat.view(torch.uint8).fill_(1 if tensor.dtype == torch.bool else 0xFF)


def look(tensor: torch.Tensor, view: dict[str, Any]) -> torch.Tensor:
    dtype = DTYPES[view["dtype"]]
    if tensor.dtype != dtype:
        tensor = tensor.view(dtype)
    return tensor.as_strided(view["shape"], view["stride"], tensor.storage_offset() + view["offset"])


def constant(value: Any) -> Any:
    """A plain constant as the plan writes it: `{"float": 1.5}`, `{"int": 3}`, `{"bool": true}`."""
    if isinstance(value, dict):
        ((_, inner),) = value.items()
        return float(inner) if isinstance(inner, str) else inner
    return value


class PlanCall:
    """What a replaced node calls: picks the plan for its arguments, and asks for one where there is none.

    `function` is what timed calls use: the native one, which knows every plan that it can replay by itself and comes here
    with the rest.
    """

    def __init__(self, index: int, ask: Callable[[int, tuple[Any, ...]], Plan | RemotePass], runner: Runner | None) -> None:
        self.index, self.ask = index, ask
        self.plans: list[tuple[tuple[Any, ...], Plan | RemotePass]] = []
        self.runner = runner
        made = runner.quick.make(self) if runner else None
        # The function holds this object, so this object must not hold the function.
        self.handle = made[1] if made else None
        self.made = made

    def function(self) -> Callable[..., Any]:
        """To be asked for once; whoever asks keeps it."""
        made, self.made = self.made, None
        return made[0] if made else self

    def __call__(self, *arguments: Any) -> Any:
        for signature, plan in self.plans:
            if fits(signature, arguments):
                return plan(arguments)
        plan = self.ask(self.index, arguments)
        if isinstance(plan, Plan):
            check_devices(arguments, plan.device)
        signature = tuple(signature_of(argument) for argument in arguments)
        self.plans.append((signature, plan))
        if self.handle is not None and self.runner is not None:
            plan.add_to(self.handle, arguments)
        return plan(arguments)


def check_devices(arguments: tuple[Any, ...], device: torch.device) -> None:
    """A kernel must not be given memory that its device cannot reach: graphs may make tensors on the CPU in between."""
    for number, argument in enumerate(arguments):
        if isinstance(argument, torch.Tensor) and argument.device.type != device.type:
            raise PlanError(f"argument {number} of the wrapper lies on {argument.device}, its kernels run on {device}")


def signature_of(argument: Any) -> Any:
    if isinstance(argument, torch.Tensor):
        return argument.dtype, argument.device, argument.shape, argument.stride(), argument.data_ptr() % 16 == 0
    return argument


def fits(signature: tuple[Any, ...], arguments: tuple[Any, ...]) -> bool:
    for known, argument in zip(signature, arguments):
        if isinstance(argument, torch.Tensor):
            dtype, device, shape, stride, aligned = known
            if (
                argument.dtype is not dtype
                or argument.device != device
                or argument.shape != shape
                or argument.stride() != stride
                or (argument.data_ptr() % 16 == 0) is not aligned
            ):
                return False
        elif type(argument) is not type(known) or argument != known:
            return False
    return len(signature) == len(arguments)


def describe(argument: Any) -> dict[str, Any]:
    """An argument as the planner wants it: no data, only what it looks like."""
    if isinstance(argument, torch.Tensor):
        return {
            "tensor": {
                "shape": list(argument.shape),
                "stride": list(argument.stride()),
                "dtype": str(argument.dtype).removeprefix("torch."),
                "aligned": argument.data_ptr() % 16 == 0,
            }
        }
    if argument is None or isinstance(argument, bool | int | float | str):
        return {"value": argument}
    if isinstance(argument, torch.device):
        return {"value": str(argument)}
    if isinstance(argument, tuple | list | torch.Size):
        return {"items": [describe(item) for item in argument]}
    return {"unknown": type(argument).__name__}
