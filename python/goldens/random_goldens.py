"""Goldens of torch's CPU generator: a sequence of draws after one seed, so that the state between draws counts too."""

from __future__ import annotations

import torch
from common import fnv1a, raw_bytes, tensor_json, write

SEED = 123
DRAWS = [
    ("randn", [5], torch.float32),
    ("randn", [3], torch.float32),
    ("randn", [16], torch.float32),
    ("randn", [3, 7], torch.float32),
    ("randn", [2], torch.float64),
    ("randn", [1000], torch.float32),
    ("rand", [9], torch.float32),
    ("rand", [9], torch.float64),
    ("rand", [20], torch.float16),
    ("rand", [20], torch.bfloat16),
    ("randn", [33], torch.float64),
    ("randn", [40], torch.float16),
    ("randn", [40], torch.bfloat16),
    ("randn", [7], torch.float16),
    ("randint", [12], torch.int64),
    ("randint", [5], torch.int32),
    ("randint_wide", [6], torch.int64),
    ("randperm", [17], torch.int64),
    ("bernoulli", [40], torch.float32),
    ("randn", [123457], torch.float32),
    ("rand", [4], torch.float32),
    ("randn", [], torch.float32),
    ("randn", [0, 3], torch.float32),
]


def draw(kind: str, shape: list[int], dtype: torch.dtype) -> torch.Tensor:
    match kind:
        case "randn":
            return torch.randn(shape, dtype=dtype)
        case "rand":
            return torch.rand(shape, dtype=dtype)
        case "randint":
            return torch.randint(-7, 1000, shape, dtype=dtype)
        case "randint_wide":
            return torch.randint(-5, 2**40, shape, dtype=dtype)
        case "randperm":
            return torch.randperm(shape[0], dtype=dtype)
        case "bernoulli":
            return torch.bernoulli(torch.full(shape, 0.3, dtype=dtype))
    raise ValueError(kind)


def main() -> None:
    torch.manual_seed(SEED)
    cases = []
    for kind, shape, dtype in DRAWS:
        value = draw(kind, shape, dtype)
        case = {"kind": kind, "shape": shape, "dtype": str(dtype)}
        if value.numel() <= 64:
            case["value"] = tensor_json(value)
        case["fnv1a"] = fnv1a(raw_bytes(value))
        cases.append(case)
    write("random.json", cases)


if __name__ == "__main__":
    main()
