"""Triton's driver for CUDA without a C compiler: cubins are loaded and launched through `libcuda.so.1` alone.

Triton builds a small library for each signature of a kernel with the machine's C compiler and loads it from its cache. In
the sandbox there is no compiler, and nothing that a program wrote can be loaded. Here a launch costs some microseconds
more, which nobody measures. Made for Triton 3.5 to 3.7.
"""

import ctypes
import struct
from typing import Any

import torch
from triton.backends.driver import GPUDriver
from triton.backends.nvidia.driver import CudaDriver
from triton.runtime import _allocation, driver

from passnet.sandboxed.poison import unwatched

# Numbers of `cuda.h`.
MAX_THREADS, SHARED_STATIC, LOCAL_BYTES, REGISTERS, MAX_DYNAMIC_SHARED = 0, 1, 3, 4, 8
PREFER_SHARED = 1
DEVICE_ATTRIBUTES = {
    "max_shared_mem": 97, "max_num_regs": 12, "multiprocessor_count": 16, "warpSize": 10, "sm_clock_rate": 13,
    "mem_clock_rate": 36, "mem_bus_width": 37,
}
DEVICE_POINTER = 3
INVALID_VALUE = 1
# Shared memory beyond this must be asked for.
SHARED_BY_DEFAULT = 49152

# How a scalar of each type lies in memory.
INTEGERS = {
    "i1": "b", "i8": "b", "i16": "h", "i32": "i", "i64": "q", "u1": "B", "u8": "B", "u16": "H", "u32": "I", "u64": "Q",
}
FLOATS = {"fp16": "e", "fp32": "f", "f32": "f", "fp64": "d"}


class Cuda:
    """The driver's library; a failure is a `RuntimeError` as Triton words it."""

    def __init__(self) -> None:
        self.library = ctypes.CDLL("libcuda.so.1")

    def __getattr__(self, name: str) -> Any:
        function = getattr(self.library, name)

        def checked(*arguments: Any) -> None:
            error = function(*arguments)
            if error:
                text = ctypes.c_char_p()
                self.library.cuGetErrorString(error, ctypes.byref(text))
                raise RuntimeError(f"Triton Error [CUDA]: {(text.value or b'unknown').decode()} ({name}: {error})")

        setattr(self, name, checked)
        return checked

    def number(self, question: str, *arguments: Any) -> int:
        answer = ctypes.c_int()
        getattr(self, question)(ctypes.byref(answer), *arguments)
        return answer.value

    def ensure_context(self, device: int) -> None:
        context = ctypes.c_void_p()
        self.cuCtxGetCurrent(ctypes.byref(context))
        if not context:
            self.cuDevicePrimaryCtxRetain(ctypes.byref(context), ctypes.c_int(device))
            self.cuCtxSetCurrent(context)

    def address(self, value: Any, index: int) -> int:
        if value is None or isinstance(value, int):
            return value or 0
        address = value.data_ptr()
        if address:
            seen = ctypes.c_uint64()
            error = self.library.cuPointerGetAttribute(ctypes.byref(seen), DEVICE_POINTER, ctypes.c_uint64(address))
            if error == INVALID_VALUE:
                raise ValueError(f"Pointer argument (at {index}) cannot be accessed from Triton (cpu tensor?)")
        return address


class Utils:
    """What Triton asks of a device."""

    def __init__(self, cuda: Cuda) -> None:
        self.cuda = cuda

    def get_device_properties(self, device: int) -> dict[str, int]:
        number = lambda attribute: self.cuda.number("cuDeviceGetAttribute", attribute, device)  # noqa: E731
        return {name: number(attribute) for name, attribute in DEVICE_ATTRIBUTES.items()}

    def load_binary(self, name: str, cubin: bytes, shared: int, device: int) -> tuple[int, int, int, int, int]:
        cuda, module, function = self.cuda, ctypes.c_void_p(), ctypes.c_void_p()
        cuda.ensure_context(device)
        cuda.cuModuleLoadData(ctypes.byref(module), cubin)
        cuda.cuModuleGetFunction(ctypes.byref(function), module, name.encode())
        of_function = lambda attribute: cuda.number("cuFuncGetAttribute", attribute, function)  # noqa: E731
        most = cuda.number("cuDeviceGetAttribute", DEVICE_ATTRIBUTES["max_shared_mem"], device)
        if shared > SHARED_BY_DEFAULT and most > SHARED_BY_DEFAULT:
            cuda.cuFuncSetCacheConfig(function, PREFER_SHARED)
            cuda.cuFuncSetAttribute(function, MAX_DYNAMIC_SHARED, most - of_function(SHARED_STATIC))
        spilled = of_function(LOCAL_BYTES) // 4
        return module.value or 0, function.value or 0, of_function(REGISTERS), spilled, of_function(MAX_THREADS)

    def set_printf_fifo_size(self, size: int) -> None:
        """What kernels print is read by nobody."""

    def fill_tma_descriptor(self, *_: Any) -> Any:
        raise NotImplementedError("tensor descriptors made by the host do not work in the compatibility tier")

    cuOccupancyMaxActiveClusters = fill_tma_descriptor  # noqa: N815 - Triton's name


class Launcher:
    """Launches the kernels of one signature."""

    cuda: Cuda

    def __init__(self, source: Any, metadata: Any) -> None:
        self.types = list(source.signature.values())
        self.metadata = metadata
        if any(isinstance(one, str) and one.startswith(("tensordesc", "nvTmaDesc")) for one in self.types):
            raise NotImplementedError("tensor descriptors made by the host do not work in the compatibility tier")
        if getattr(metadata, "num_ctas", 1) != 1:
            raise NotImplementedError("clusters (`num_ctas`) do not work in the compatibility tier")

    def __call__(self, x: int, y: int, z: int, stream: int, function: int, _packed: Any, launch: Any, enter: Any, leave: Any, *arguments: Any) -> None:
        if enter is not None:
            enter(launch)
        self.cuda.ensure_context(torch.cuda.current_device())
        values: list[Any] = []
        for index, (kind, value) in enumerate(zip(self.types, arguments, strict=True)):
            self.place(kind, value, index, values)
        for name, allocator in (("global_scratch", _allocation._allocator), ("profile_scratch", getattr(_allocation, "_profile_allocator", None))):
            size = getattr(self.metadata, f"{name}_size", 0) or 0
            scratch = None
            if size and x * y * z:
                scratch = allocator.get()(x * y * z * size, getattr(self.metadata, f"{name}_align"), stream)
            values.append(ctypes.c_uint64(self.cuda.address(scratch, -1)))
        pointers = (ctypes.c_void_p * len(values))(*(ctypes.addressof(value) for value in values))
        if x * y * z:
            shape = [ctypes.c_uint(number) for number in (x, y, z, 32 * self.metadata.num_warps, 1, 1, self.metadata.shared)]
            where = (ctypes.c_void_p(function), *shape, ctypes.c_void_p(stream), pointers)
            if getattr(self.metadata, "launch_cooperative_grid", False):
                self.cuda.cuLaunchCooperativeKernel(*where)
            else:
                self.cuda.cuLaunchKernel(*where, None)
        if leave is not None:
            leave(launch)

    def place(self, kind: Any, value: Any, index: int, into: list[Any]) -> None:
        if isinstance(kind, tuple):
            for one, item in zip(kind, value, strict=True):
                self.place(one, item, index, into)
        elif kind.startswith("*"):
            into.append(ctypes.c_uint64(self.cuda.address(value, index)))
        elif kind == "bf16":
            # The upper half of a float32, as Triton's launcher cuts it.
            into.append(ctypes.create_string_buffer(struct.pack("f", value)[2:], 2))
        elif kind != "constexpr":
            form = INTEGERS.get(kind) or FLOATS[kind]
            raw = struct.pack(form, float(value) if kind in FLOATS else int(value))
            into.append(ctypes.create_string_buffer(raw, len(raw)))


class SandboxDriver(CudaDriver):
    def __init__(self) -> None:
        Launcher.cuda = cuda = Cuda()
        self.utils = Utils(cuda)
        self.launcher_cls = Launcher
        GPUDriver.__init__(self)

    def get_benchmarker(self) -> Any:
        measure = super().get_benchmarker()

        def unwatched_measure(*arguments: Any, **options: Any) -> Any:
            with unwatched():
                return measure(*arguments, **options)

        return unwatched_measure


def install() -> None:
    driver.set_active(SandboxDriver())
