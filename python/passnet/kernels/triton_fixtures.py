"""Kernel fixtures on the PyTorch side: read a file's header, make its inputs, run its wrapper under Triton.

The input data come from a counter-based generator that the Rust side repeats bit for bit. Nothing here needs more
than PyTorch and Triton. Whether Triton interprets or compiles is decided by the environment before the import.
"""

import ast
import importlib.util
import json
import os
import re
import struct
import sys
import time
from pathlib import Path

import torch
import triton


def logical_shift(bits: torch.Tensor, by: int) -> torch.Tensor:
    return (bits >> by) & ((1 << (64 - by)) - 1)


def signed(word: int) -> int:
    return word - (1 << 64) if word >> 63 else word


def random_bits(stream: int, count: int) -> torch.Tensor:
    """SplitMix64 of a counter; each input has its own stream. Unsigned words held in int64."""
    index = torch.arange(1, count + 1, dtype=torch.int64) + (stream << 40)
    z = index * signed(0x9E3779B97F4A7C15)
    z = (z ^ logical_shift(z, 30)) * signed(0xBF58476D1CE4E5B9)
    z = (z ^ logical_shift(z, 27)) * signed(0x94D049BB133111EB)
    return z ^ logical_shift(z, 31)


def unit(bits: torch.Tensor) -> torch.Tensor:
    return logical_shift(bits, 40).to(torch.float64) / float(1 << 24)


def unsigned_remainder(bits: torch.Tensor, by: int) -> torch.Tensor:
    wrapped = torch.where(bits < 0, (1 << 64) % by, 0)
    return (bits % by + wrapped) % by


def storage(stream: int, count: int, filling: list[str]) -> torch.Tensor:
    kind = filling[0] if filling else "normal"
    if kind == "normal":
        sums = unit(random_bits(stream, 4 * count)).reshape(count, 4)
        total = ((sums[:, 0] + sums[:, 1]) + sums[:, 2]) + sums[:, 3]
        return (total - 2.0) * 1.7320508075688772
    if kind == "uniform":
        low, high = float(filling[1]), float(filling[2])
        return low + (high - low) * unit(random_bits(stream, count))
    if kind == "int":
        low, high = int(filling[1]), int(filling[2])
        return low + unsigned_remainder(random_bits(stream, count), max(high - low, 1))
    if kind == "arange":
        return torch.arange(count, dtype=torch.int64)
    if kind == "constant":
        return torch.full((count,), float(filling[1]), dtype=torch.float64)
    raise ValueError(f"unknown filling {kind}")


def tensor(stream: int, text: str, device: str) -> torch.Tensor:
    _, dtype, shape, rest = re.match(r"(\S+) (\S+) \[(.*?)\]\s*(.*)$", text).groups()
    shape = [int(d) for d in shape.split(",") if d.strip()]
    rest, _, stride = rest.partition("stride")
    stride = ast.literal_eval(stride.strip()) if stride else None
    if stride is None:
        count = torch.Size(shape).numel()
    else:
        count = 1 + sum((d - 1) * s for d, s in zip(shape, stride)) if 0 not in shape else 0
    dtype = getattr(torch, dtype)
    values = storage(stream, count, rest.split())
    # float64 -> float32 -> half, as the Rust side rounds.
    if dtype in (torch.float16, torch.bfloat16):
        values = values.to(torch.float32)
    flat = values.to(dtype).to(device)
    return flat.reshape(shape) if stride is None else flat.as_strided(shape, stride)


def header(path: Path, device: str):
    """Wrapper name, inputs, tolerance and expected rules of a fixture."""
    wrapper, inputs, tolerance, expect = None, [], None, []
    for line in path.read_text().splitlines():
        if line and not line.startswith("#"):
            break
        key, _, rest = line.lstrip("#").partition(":")
        rest = rest.strip()
        if key.strip() == "wrapper":
            wrapper = rest
        elif key.strip() == "input":
            inputs.append(tensor(len(inputs), rest, device))
        elif key.strip() == "value":
            inputs.append(ast.literal_eval(rest))
        elif key.strip() == "tolerance":
            tolerance = float(rest)
        elif key.strip() == "expect":
            expect = rest.split()
    return wrapper, inputs, tolerance, expect


class FirstConfig:
    """Stands in for the autotuner, which needs a GPU to measure: the first configuration is used."""

    def __init__(self, function, config):
        self.function, self.config = function, config

    def __getitem__(self, grid):
        return lambda *args, **kwargs: self.function[grid](*args, **kwargs, **self.config.kwargs)


def load(path: Path):
    if os.environ.get("TRITON_INTERPRET") == "1":
        triton.autotune = lambda configs, **_: lambda function: FirstConfig(function, configs[0])
    # A name of its own: a fixture called `erf` must not hide a module of that name.
    name = f"kernel_fixture_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def run(path: Path, device: str):
    """Outputs on the CPU, tolerance, expected rules, seconds of the wrapper's call."""
    wrapper, inputs, tolerance, expect = header(path, device)
    function = getattr(load(path), wrapper)
    started = time.perf_counter()
    result = function(*inputs)
    if device != "cpu":
        torch.cuda.synchronize()
    seconds = time.perf_counter() - started
    outputs = result if isinstance(result, (tuple, list)) else (result,)
    return [o.contiguous().cpu() for o in outputs], tolerance, expect, seconds


def fixtures(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*.py"))


def worst_error(ours: torch.Tensor, theirs: torch.Tensor) -> float:
    """Largest error relative to the larger of the value and one; infinite where exactness is asked and missed."""
    if ours.shape != theirs.shape or ours.dtype != theirs.dtype:
        return float("inf")
    if not theirs.dtype.is_floating_point:
        return 0.0 if torch.equal(ours, theirs) else float("inf")
    a, b = ours.double(), theirs.double()
    same = (a == b) | (a.isnan() & b.isnan())
    error = (a - b).abs() / b.abs().clamp(min=1.0)
    return float(torch.where(same, 0.0, error.nan_to_num(float("inf"))).max()) if a.numel() else 0.0


DTYPES = {
    "BOOL": torch.bool, "U8": torch.uint8, "I8": torch.int8, "I16": torch.int16, "I32": torch.int32,
    "I64": torch.int64, "F16": torch.float16, "BF16": torch.bfloat16, "F32": torch.float32, "F64": torch.float64,
}


def read_safetensors(path: Path) -> dict[str, torch.Tensor]:
    """The format is a length, a JSON header and raw data: not worth a dependency on a rented machine."""
    data = Path(path).read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    tensors = {}
    for name, entry in json.loads(data[8 : 8 + length]).items():
        if name == "__metadata__":
            continue
        start, end = (8 + length + offset for offset in entry["data_offsets"])
        flat = torch.frombuffer(bytearray(data[start:end]), dtype=torch.uint8) if end > start else torch.empty(0, dtype=torch.uint8)
        tensors[name] = flat.view(DTYPES[entry["dtype"]]).reshape(entry["shape"])
    return tensors
