"""Shared by the golden generators: tensors as JSON, written compactly and deterministically.

Run a generator from the repository root with a Python that has PyTorch: `python python/goldens/random_goldens.py`.
"""

from __future__ import annotations

import base64
import json
import sys
from pathlib import Path

import torch

ROOT = Path(__file__).resolve().parents[2]
GOLDEN_DIR = ROOT / "crates" / "passnet-engine" / "tests" / "golden"
sys.path.insert(0, str(ROOT / "python"))


def raw_bytes(tensor: torch.Tensor) -> bytes:
    """The elements in row-major order, little-endian."""
    flat = tensor.detach().contiguous().reshape(-1)
    return flat.view(torch.uint8).numpy().tobytes() if flat.numel() else b""


def fnv1a(data: bytes) -> str:
    """A checksum for tensors too long to be stored."""
    value = 0xCBF29CE484222325
    for byte in data:
        value = ((value ^ byte) * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF
    return f"{value:016x}"


def tensor_json(tensor: torch.Tensor) -> dict:
    """A tensor with its memory layout."""
    return {
        "dtype": str(tensor.dtype),
        "shape": list(tensor.shape),
        "strides": list(tensor.stride()),
        "data": base64.b64encode(raw_bytes(tensor)).decode(),
    }


def write(name: str, cases: list[dict]) -> None:
    """One case per line, so that differences read well."""
    GOLDEN_DIR.mkdir(parents=True, exist_ok=True)
    lines = ",\n".join(json.dumps(case) for case in cases)
    (GOLDEN_DIR / name).write_text(f"[\n{lines}\n]\n")
