"""Prefixes of a graph as functions of their own: the first `k` ops, returning what the rest needs.

Outputs of a prefix are the values made inside it that a later op or the return reads; arguments it
does not use are dropped. A prefix whose values nobody reads returns its last value.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from .statements import Bind, Forward, Op, written_name


@dataclass(frozen=True)
class Prefix:
    """The first `ops` operations of a graph, ready to be called."""

    ops: int
    arguments: tuple[str, ...]
    function: Callable[..., Any]


@dataclass
class Trace:
    """Which value every name holds after each op, and where each value is read last."""

    # A value is the op that made it, or the name of an argument.
    names_after: list[dict[str, int | str]]
    last_read: dict[int | str, int]


def trace(forward: Forward) -> Trace:
    names: dict[str, int | str] = {argument.name: argument.name for argument in forward.arguments}
    names_after: list[dict[str, int | str]] = []
    last_read: dict[int | str, int] = {}

    def read(node: ast.AST, at: int) -> None:
        for part in ast.walk(node):
            if isinstance(part, ast.Name) and part.id in names:
                last_read[names[part.id]] = at

    for step in forward.steps:
        if isinstance(step, Op):
            read(step.statement, step.index)
            target = assigned_name(step.statement)
            if target:
                names[target] = step.index
            names_after.append(dict(names))
            continue
        apply_bind(step, names)
        if names_after:
            names_after[-1] = dict(names)
    if forward.returns is not None:
        read(forward.returns, len(names_after))
    return Trace(names_after, last_read)


def assigned_name(statement: ast.stmt) -> str | None:
    """The variable that holds the op's result right after the statement."""
    if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
        return statement.targets[0].id
    return written_name(statement)


def apply_bind(bind: Bind, names: dict[str, int | str]) -> None:
    for target in bind.targets:
        if bind.source is None:
            names.pop(target, None)
        elif bind.source in names:
            names[target] = names[bind.source]


def prefix(forward: Forward, traced: Trace, ops: int) -> Prefix:
    """Cut the first `ops` operations out as a function."""
    body: list[ast.stmt] = []
    position = 0
    for step in forward.steps:
        if isinstance(step, Op):
            if position == ops:
                break
            position += 1
            body.append(step.statement)
        elif step.source is not None:
            body.extend(
                ast.Assign([ast.Name(target, ast.Store())], ast.Name(step.source, ast.Load()))
                for target in step.targets
            )
    names = traced.names_after[ops - 1]
    live: dict[int, str] = {}
    for name, value in names.items():
        if isinstance(value, int) and traced.last_read.get(value, -1) >= ops:
            live.setdefault(value, name)
    if not live:
        live = {value: name for name, value in names.items() if value == ops - 1}
    returned = [ast.Name(live[value], ast.Load()) for value in sorted(live)]
    body.append(ast.Return(ast.Tuple(returned, ast.Load())))
    read = {part.id for s in body for part in ast.walk(s) if isinstance(part, ast.Name)}
    arguments = tuple(a.name for a in forward.arguments if a.name in read)
    parameters = ast.arguments(
        posonlyargs=[], args=[ast.arg(name) for name in arguments], kwonlyargs=[],
        kw_defaults=[], defaults=[],
    )  # fmt: skip
    function = ast.FunctionDef("forward", parameters, body, [])
    if "type_params" in ast.FunctionDef._fields:
        function.type_params = []
    module = ast.fix_missing_locations(ast.Module([function], []))
    scope: dict[str, Any] = {"torch": torch, "device": torch.device, "inf": float("inf")}
    exec(compile(module, f"<prefix of {ops} ops>", "exec"), scope)
    return Prefix(ops, arguments, scope["forward"])
