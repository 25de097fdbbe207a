"""What a value of a graph is: the TYPE records that parity checks compare.

    TYPE := {"dtype": "float32", "shape": [...], "stride": [...]}
          | {"list": [TYPE...]} | {"scalar": "int|float|bool", "value": v|null}
          | {"none": true} | {"other": "..."}

Tuples, lists and `torch.Size` are all `list`; nothing downstream distinguishes them.
"""

from __future__ import annotations

import math
from typing import Any

import torch

Type = dict[str, Any]


def describe(value: object) -> Type:
    """The TYPE of a Python or PyTorch value."""
    if isinstance(value, torch.Tensor):
        dtype = str(value.dtype).removeprefix("torch.")
        return {"dtype": dtype, "shape": list(value.shape), "stride": list(value.stride())}
    if isinstance(value, (list, tuple)):
        return {"list": [describe(item) for item in value]}
    if value is None:
        return {"none": True}
    if isinstance(value, bool):
        return {"scalar": "bool", "value": value}
    if isinstance(value, int):
        return {"scalar": "int", "value": value}
    if isinstance(value, float):
        # JSON has no infinities; a word keeps the line readable by every parser.
        return {"scalar": "float", "value": value if math.isfinite(value) else repr(value)}
    return {"other": type(value).__name__}


def same_kind(left: Type, right: Type) -> bool:
    """Equal but for strides: shapes, dtypes, list lengths, scalars."""
    if "dtype" in left:
        return (left["dtype"], left["shape"]) == (right.get("dtype"), right.get("shape"))
    if "list" in left:
        other = right.get("list")
        return (
            isinstance(other, list)
            and len(other) == len(left["list"])
            and all(same_kind(a, b) for a, b in zip(left["list"], other))
        )
    return left == right


def same_strides(left: Type, right: Type) -> bool:
    """Equal strides along every dimension that has more than one element."""
    if "list" in left:
        return all(same_strides(a, b) for a, b in zip(left["list"], right["list"]))
    if "dtype" not in left or 0 in left["shape"]:
        return True
    pairs = zip(left["shape"], left["stride"], right["stride"])
    return all(size == 1 or a == b for size, a, b in pairs)


def to_text(kind: Type) -> str:
    """One line for people and for golden files: `float32[2,3] stride(3,1)`."""
    if "dtype" in kind:
        shape = ",".join(map(str, kind["shape"]))
        stride = ",".join(map(str, kind["stride"]))
        return f"{kind['dtype']}[{shape}] stride({stride})"
    if "list" in kind:
        return "[" + ", ".join(to_text(item) for item in kind["list"]) + "]"
    if "scalar" in kind:
        return f"{kind['scalar']} {kind['value']}"
    if "none" in kind:
        return "none"
    if "unknown" in kind:
        return f"unknown ({kind['unknown']})"
    return f"other {kind.get('other', '?')}"
