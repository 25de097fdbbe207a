"""Inputs of a graph folder, drawn by the reference's rules with PyTorch's CPU generator.

The single Python statement of those rules; `passnet-engine` draws the same bits in Rust (`native::inputs`).
Metadata files are read as syntax, never executed.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from pathlib import Path

import torch

DEFAULT_SEED = 123
_DRAWN_BY_RANGE = {torch.int8, torch.int16, torch.int32, torch.int64}


@dataclass(frozen=True)
class TensorMeta:
    """One class of `weight_meta.py` or `input_meta.py`."""

    class_name: str
    name: str
    shape: list[int]
    dtype: torch.dtype
    mean: float | None = None
    std: float | None = None
    data: list | None = None
    min_val: float | int | None = None
    max_val: float | int | None = None


def _literal(node: ast.expr):
    """A literal, where `float("-inf")` and friends count as literals too."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "float":
        return float(ast.literal_eval(node.args[0]))
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -_literal(node.operand)
    if isinstance(node, (ast.List, ast.Tuple)):
        return [_literal(element) for element in node.elts]
    if isinstance(node, ast.Name) and node.id in ("inf", "nan"):
        return float(node.id)
    return ast.literal_eval(node)


def read_metas(path: Path) -> list[TensorMeta]:
    """The classes of a metadata file, alphabetical by class name; a missing file has none."""
    if not path.exists():
        return []
    by_class: dict[str, TensorMeta] = {}
    for statement in ast.parse(path.read_text()).body:
        if not isinstance(statement, ast.ClassDef):
            continue
        fields = {
            line.targets[0].id: _literal(line.value)
            for line in statement.body
            if isinstance(line, ast.Assign) and isinstance(line.targets[0], ast.Name)
        }
        by_class[statement.name] = TensorMeta(
            class_name=statement.name,
            name=fields["name"],
            shape=list(fields.get("shape", [])),
            dtype=getattr(torch, fields["dtype"].split(".")[-1]),
            mean=fields.get("mean"),
            std=fields.get("std"),
            data=fields.get("data"),
            min_val=fields.get("min_val"),
            max_val=fields.get("max_val"),
        )
    return [by_class[key] for key in sorted(by_class)]


def _convert(meta: TensorMeta) -> torch.Tensor | None:
    """The first step, done for every class before any normal number is drawn."""
    if meta.dtype in _DRAWN_BY_RANGE and meta.min_val is not None and meta.max_val is not None:
        return torch.randint(int(meta.min_val), int(meta.max_val) + 1, meta.shape, dtype=meta.dtype)
    if meta.data is not None:
        return torch.tensor(meta.data, dtype=meta.dtype).reshape(meta.shape)
    return None


def _bound(value: float, dtype: torch.dtype) -> torch.Tensor:
    """A bound as the type holds it: the least float32 of a mask is no bound for half precision, and no error."""
    kind = torch.float64 if isinstance(value, float) else torch.int64
    return torch.tensor(value, dtype=kind).to(dtype)


def _replay(meta: TensorMeta) -> torch.Tensor:
    """The second step, for a class that the first one left without a value."""
    if meta.dtype is torch.bool:
        return torch.randn(meta.shape) > 0.5
    mean = 0.0 if meta.mean is None else float(meta.mean)
    std = 0.1 if meta.std is None else float(meta.std)
    if std == 0:
        value = torch.full(meta.shape, mean, dtype=torch.float64).to(meta.dtype)
    else:
        value = torch.randn(meta.shape).to(meta.dtype) * std * 0.2 + mean
    if meta.min_val is not None:
        value = torch.clamp(value, min=_bound(meta.min_val, value.dtype))
    if meta.max_val is not None:
        value = torch.clamp(value, max=_bound(meta.max_val, value.dtype))
    if meta.dtype.is_floating_point:
        finite = torch.isfinite(value)
        if not bool(finite.all()):
            value = torch.where(finite, value, torch.randn(meta.shape).to(meta.dtype) * 0.01)
        value = torch.clamp(value, -100, 100)
    return value.to(meta.dtype)


def replay_metas(metas: list[TensorMeta], seed: int = DEFAULT_SEED) -> dict[str, torch.Tensor]:
    """Draws every tensor: all conversions first, then all replays, in the given order."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        converted = {meta.name: (meta, _convert(meta)) for meta in metas}
        return {
            name: _replay(meta) if value is None else value
            for name, (meta, value) in converted.items()
        }


def replay_inputs(graph_dir: str | Path, seed: int = DEFAULT_SEED) -> dict[str, torch.Tensor]:
    """The inputs of the graph in `graph_dir`, by forward-parameter name."""
    graph_dir = Path(graph_dir)
    metas = read_metas(graph_dir / "input_meta.py") + read_metas(graph_dir / "weight_meta.py")
    return replay_metas(metas, seed)


