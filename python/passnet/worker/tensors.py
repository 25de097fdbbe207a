"""Tensors as frames carry them: shape, strides, dtype, and the elements they reach in their memory."""

import ctypes
import math
from typing import Any

import torch

DTYPES = {
    str(dtype).removeprefix("torch."): dtype
    for dtype in (
        torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.float16, torch.bfloat16,
        torch.float32, torch.float64, torch.complex64, torch.complex128,
    )
}

# `torch.equal` takes five times as long.
MEMCMP = ctypes.CDLL(None).memcmp
MEMCMP.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t]


def from_wire(described: dict[str, Any], data: memoryview, device: torch.device) -> torch.Tensor:
    """A fresh tensor with the strides the other side has."""
    dtype = DTYPES[described["dtype"]]
    shape, stride = described["shape"], described["stride"]
    if math.prod(shape) == 0:
        return torch.empty_strided(shape, stride, dtype=dtype, device=device)
    start, length = described["bytes"]
    elements = torch.frombuffer(data, dtype=dtype, count=length // dtype.itemsize, offset=start)
    return elements.to(device, copy=True).as_strided(shape, stride)


def unexpanded(tensor: torch.Tensor) -> torch.Tensor:
    """What an expanded tensor expands: nothing can be written where several elements lie in one place."""
    for dimension, (size, stride) in enumerate(zip(tensor.shape, tensor.stride())):
        if stride == 0 and size > 1:
            tensor = tensor.narrow(dimension, 0, 1)
    return tensor


def still_holds(tensor: torch.Tensor, described: dict[str, Any], data: memoryview) -> bool:
    """Whether a tensor that `from_wire` made is as it was made."""
    if list(tensor.shape) != described["shape"] or list(tensor.stride()) != described["stride"]:
        return False
    start, length = described["bytes"]
    if tensor.numel() == 0:
        return True
    if tensor.is_cpu:
        original = ctypes.c_uint8.from_buffer(data, start)
        return MEMCMP(tensor.untyped_storage().data_ptr(), ctypes.addressof(original), length) == 0
    return same_bits(tensor, from_wire(described, data, tensor.device))


def to_wire(tensor: torch.Tensor, parts: list[memoryview], at: int) -> dict[str, Any]:
    """Appends the elements in row-major order."""
    dense = tensor.detach().resolve_conj().resolve_neg().to("cpu").contiguous()
    raw = bytes_of(dense)
    parts.append(raw)
    return {
        "dtype": str(tensor.dtype).removeprefix("torch."),
        "shape": list(tensor.shape),
        "stride": list(tensor.stride()),
        "bytes": [at, raw.nbytes],
    }


def bytes_of(dense: torch.Tensor) -> memoryview:
    """The memory of a contiguous tensor of the CPU, which it keeps alive. Without NumPy, which PyTorch does not need."""
    if dense.numel() == 0:
        return memoryview(b"")
    memory = (ctypes.c_uint8 * (dense.numel() * dense.element_size())).from_address(dense.data_ptr())
    memory.tensor = dense
    return memoryview(memory).cast("B")


def to_wire_argument(value: Any, parts: list[memoryview]) -> dict[str, Any]:
    """An argument with all that a wrapper can ask of it; `from_wire` reads its tensors."""
    if isinstance(value, torch.Tensor):
        at = sum(part.nbytes for part in parts)
        reached = 1 + sum((size - 1) * stride for size, stride in zip(value.shape, value.stride(), strict=True))
        flat = value.detach().as_strided((reached if value.numel() else 0,), (1,))
        entry = to_wire(flat, parts, at)
        return {**entry, "shape": list(value.shape), "stride": list(value.stride())}
    if isinstance(value, tuple | list):
        return {"items": [to_wire_argument(item, parts) for item in value]}
    if value is None or isinstance(value, bool | int | float | str):
        return {"value": value}
    raise NotImplementedError(f"an argument of type {type(value).__name__} cannot go into the sandbox")


def flatten(value: Any, into: list[torch.Tensor]) -> None:
    """Every tensor of a result, in order; numbers become 0-d tensors."""
    if isinstance(value, torch.Tensor):
        into.append(value)
    elif isinstance(value, bool | int | float | complex):
        into.append(torch.tensor(value, dtype=torch.float64 if isinstance(value, float) else None))
    elif isinstance(value, tuple | list):
        for item in value:
            flatten(item, into)


# Compared as they are, element by element: bytes would be four times as many.
INTEGERS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


def same_bits(one: torch.Tensor, two: torch.Tensor) -> bool:
    if one.dtype != two.dtype or one.shape != two.shape:
        return False
    if is_plain_memory(one) and is_plain_memory(two):
        return MEMCMP(one.data_ptr(), two.data_ptr(), one.nbytes) == 0
    return torch.equal(bits_of(one), bits_of(two))


def is_plain_memory(tensor: torch.Tensor) -> bool:
    """Whether its elements lie on the CPU in row-major order, as they are."""
    return tensor.is_cpu and tensor.is_contiguous() and not tensor.is_neg() and not tensor.is_conj()


def bits_of(tensor: torch.Tensor) -> torch.Tensor:
    parts = torch.view_as_real(tensor.resolve_conj()) if tensor.is_complex() else tensor
    return parts.resolve_neg().view(INTEGERS[parts.element_size()])
