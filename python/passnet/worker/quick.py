"""Calls that go from a graph to the launch of its kernel without Python in between.

The native runner looks at arguments through PyTorch's C functions (those that models compiled ahead of time use). It must
know where they lie, and where in a Python tensor the C++ tensor is; both are found here. A PyTorch that has them not is
served by the slow way, which is `PlanCall` itself.
"""

import ctypes
import json
from pathlib import Path
from typing import Any

import torch

FUNCTIONS = (
    "get_data_ptr", "get_sizes", "get_strides", "get_dim", "get_dtype", "get_device_type", "get_device_index",
)


def tensor_offset() -> int | None:
    """Where in a Python tensor the pointer to its C++ tensor lies; found, not assumed."""
    found: set[int] | None = None
    for tensor in (torch.empty(1), torch.empty(2, 3, dtype=torch.int64), torch.ones(4)[1:]):
        words = range(0, type(tensor).__basicsize__, ctypes.sizeof(ctypes.c_uint64))
        here = {at for at in words if ctypes.c_uint64.from_address(id(tensor) + at).value == tensor._cdata}
        found = here if found is None else found & here
    return found.pop() if found and len(found) == 1 else None


def address_of(library: ctypes.CDLL, name: str) -> int:
    function = getattr(library, f"aoti_torch_{name}", None)
    return ctypes.cast(function, ctypes.c_void_p).value or 0 if function is not None else 0


def describe_torch() -> dict[str, int] | None:
    """What the native side must know of this PyTorch; `None` where it cannot."""
    offset = tensor_offset()
    folder = Path(torch.__file__).parent / "lib"
    try:
        library = ctypes.CDLL(str(folder / "libtorch_cpu.so"))
        with_cuda = ctypes.CDLL(str(folder / "libtorch_cuda.so")) if torch.cuda.is_available() else None
    except OSError:
        return None
    described = {name: address_of(library, name) for name in FUNCTIONS}
    if offset is None or not all(described.values()):
        return None
    described["tensor_offset"] = offset
    described["get_current_cuda_stream"] = address_of(with_cuda, "get_current_cuda_stream") if with_cuda else 0
    return described


def empty_strided(device: torch.device) -> Any:
    """PyTorch's quickest allocation of a tensor, or `None`: `torch.empty` spends most of its time on its arguments."""
    guards = getattr(getattr(torch._C, "_dynamo", None), "guards", None)
    return getattr(guards, f"_empty_strided_{device.type}", None)


def look_from() -> Any:
    """PyTorch's quickest view of a tensor, or `None`: a function of the tensor, sizes, strides and how far into the tensor
    it begins. Code of TorchInductor makes its views so; autograd does not see them."""
    guards = getattr(getattr(torch._C, "_dynamo", None), "guards", None)
    return getattr(guards, "_reinterpret_tensor", None)


class QuickCalls:
    """The part of the native library that knows Python; its lock stays held in these calls."""

    def __init__(self, path: str, error: type[Exception]) -> None:
        library = ctypes.PyDLL(path)
        pointer, size, thing = ctypes.c_void_p, ctypes.c_size_t, ctypes.py_object
        library.pn_python.argtypes = [ctypes.c_char_p, size, thing, thing]
        library.pn_call_new.argtypes = [thing, ctypes.POINTER(pointer)]
        # A plain pointer: null is no object, and ctypes would take it for an exception.
        library.pn_call_new.restype = pointer
        library.pn_call_add.argtypes = [pointer, pointer, ctypes.c_char_p, size, thing, thing]
        library.pn_call_measure.argtypes = [pointer, thing, size, ctypes.POINTER(ctypes.c_uint64)]
        self.library = library
        described = describe_torch()
        text = json.dumps(described).encode()
        self.usable = described is not None and library.pn_python(text, len(text), torch.Tensor, error) == 0

    def make(self, slow: Any) -> tuple[Any, int] | None:
        """A function that calls `slow` until it knows a plan, and its handle."""
        handle = ctypes.c_void_p()
        function = self.library.pn_call_new(slow, ctypes.byref(handle)) if self.usable else None
        if not function:
            return None
        made = ctypes.cast(function, ctypes.py_object).value
        # The cast took a reference of its own; the one that was handed out is given back.
        ctypes.pythonapi.Py_DecRef(ctypes.py_object(made))
        return made, handle.value

    def add(self, handle: int, plan: int, layout: dict[str, Any], arguments: tuple, fresh: tuple) -> bool:
        text = json.dumps(layout).encode()
        return self.library.pn_call_add(handle, plan, text, len(text), arguments, fresh) == 0

    def measure(self, handle: int, arguments: tuple, repeats: int) -> list[float] | None:
        """Seconds of one call: looking at arguments, allocating, launching."""
        sums = (ctypes.c_uint64 * 3)()
        if self.library.pn_call_measure(handle, arguments, repeats, sums) != 0:
            return None
        return [total / repeats / 1e9 for total in sums]
