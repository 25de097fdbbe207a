"""Goldens of input materialisation: every rule of the reference, in one file's worth of classes."""

from __future__ import annotations

import math

import torch
from common import fnv1a, raw_bytes, tensor_json, write

from passnet.graphs.replay import TensorMeta, replay_metas

INF = math.inf
METAS = [
    TensorMeta("z_last", "plain", [4, 9], torch.float32, mean=0.5, std=0.289),
    TensorMeta("a_first", "short", [3], torch.float32, mean=-1.0, std=2.0),
    TensorMeta("half", "half", [5, 5], torch.float16, mean=0.123, std=1.7),
    TensorMeta("brain", "brain", [5, 7], torch.bfloat16, mean=0.123, std=1.7),
    TensorMeta("double", "double", [21], torch.float64, mean=0.3, std=0.7),
    TensorMeta("constant", "constant", [6], torch.float32, mean=0.1, std=0.0),
    TensorMeta("constant_half", "constant_half", [2], torch.float16, mean=0.1, std=0.0),
    TensorMeta("none", "none", [17], torch.float32),
    TensorMeta("data", "data", [2, 2], torch.float32, mean=0.0, std=1.0, data=[0.1, -2.5, 3.0, 1e-7]),
    TensorMeta("int_data", "int_data", [3], torch.int64, data=[5, -6, 7]),
    TensorMeta("range", "range", [4, 4], torch.int64, min_val=0, max_val=9),
    TensorMeta("range_small", "range_small", [30], torch.int8, min_val=-3, max_val=3),
    TensorMeta("one_bound", "one_bound", [5], torch.int32, min_val=2),
    TensorMeta("flags", "flags", [40], torch.bool),
    TensorMeta("variance", "variance", [30], torch.float32, mean=0.02, std=1.0, min_val=0),
    TensorMeta("clipped", "clipped", [30], torch.float32, mean=0.0, std=20.0, min_val=-0.5, max_val=0.5),
    TensorMeta("mask", "mask", [3, 11], torch.float32, mean=-INF, std=INF),
    TensorMeta("mask_half", "mask_half", [33], torch.float16, mean=-INF, std=INF),
    TensorMeta("mask_nan", "mask_nan", [20], torch.float32, mean=-INF, std=math.nan),
    TensorMeta("huge", "huge", [20], torch.float32, mean=50.0, std=1e4),
    TensorMeta("bytes", "bytes", [20], torch.uint8, mean=100.0, std=300.0),
    TensorMeta("long", "long", [50, 101], torch.float32, mean=0.01, std=0.02),
    TensorMeta("scalar", "scalar", [], torch.float32, mean=0.0, std=1.0),
    TensorMeta("empty", "empty", [0, 4], torch.float32, mean=0.0, std=1.0),
]


def number(value):
    """JSON has no infinities."""
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def main() -> None:
    drawn = replay_metas(sorted(METAS, key=lambda meta: meta.class_name), seed=123)
    cases = []
    for meta in METAS:
        value = drawn[meta.name]
        case = {
            "class_name": meta.class_name,
            "name": meta.name,
            "shape": meta.shape,
            "dtype": str(meta.dtype),
            "mean": number(meta.mean),
            "std": number(meta.std),
            "data": meta.data,
            "min_val": meta.min_val,
            "max_val": meta.max_val,
            "fnv1a": fnv1a(raw_bytes(value)),
        }
        if value.numel() <= 64:
            case["value"] = tensor_json(value)
        cases.append(case)
    write("inputs.json", cases)


if __name__ == "__main__":
    main()
