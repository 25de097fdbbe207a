"""The op statements of a `model.py`, numbered as PassNet's Rust parser numbers them.

An op index is the position among the statements that compute something. Plain aliases (`a = b`)
and clean-ups (`a = b = None`) compute nothing; an augmented assignment or a subscript write is
one op together with the alias that follows it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Argument:
    """One forward argument; `annotation` is its source text, empty where there is none."""

    name: str
    annotation: str

    @property
    def is_symint(self) -> bool:
        return self.annotation.endswith("SymInt")


@dataclass(frozen=True)
class Op:
    """One numbered statement. `name` is the value it leaves behind (`""` for a bare call)."""

    index: int
    name: str
    statement: ast.stmt

    @property
    def line(self) -> int:
        return self.statement.lineno


@dataclass(frozen=True)
class Bind:
    """A statement without an op index: an alias (`source` named) or a clean-up (`source` None)."""

    targets: tuple[str, ...]
    source: str | None


@dataclass(frozen=True)
class Forward:
    """The body of `GraphModule.forward` in program order."""

    arguments: tuple[Argument, ...]
    steps: tuple[Op | Bind, ...]
    returns: ast.expr | None

    @property
    def ops(self) -> tuple[Op, ...]:
        return tuple(step for step in self.steps if isinstance(step, Op))


def read_model(path: Path) -> Forward:
    """Read the graph in a `model.py`."""
    return parse_model(path.read_text(encoding="utf-8"), str(path))


def parse_model(source: str, filename: str = "<model>") -> Forward:
    """Find `forward` in the source of a `model.py` and number its statements."""
    for node in ast.walk(ast.parse(source, filename)):
        if isinstance(node, ast.FunctionDef) and node.name == "forward":
            arguments = tuple(
                Argument(arg.arg, ast.unparse(arg.annotation) if arg.annotation else "")
                for arg in node.args.args
                if arg.arg != "self"
            )
            returns = next((s.value for s in node.body if isinstance(s, ast.Return)), None)
            return Forward(arguments, tuple(number(node.body)), returns)
    raise ValueError(f"{filename}: no function named `forward`")


def number(body: list[ast.stmt]) -> Iterator[Op | Bind]:
    """Turn statements into numbered ops and unnumbered binds; stops at `return`."""
    index = 0
    for position, statement in enumerate(body):
        if isinstance(statement, ast.Return):
            return
        if isinstance(statement, ast.Pass):
            continue
        bind = as_bind(statement)
        if bind is not None:
            yield bind
            continue
        following = body[position + 1] if position + 1 < len(body) else None
        yield Op(index, result_name(statement, following), statement)
        index += 1


def as_bind(statement: ast.stmt) -> Bind | None:
    """The statement as an alias or a clean-up, or None when it is an op."""
    if not isinstance(statement, ast.Assign):
        return None
    if not all(isinstance(target, ast.Name) for target in statement.targets):
        return None
    targets = tuple(target.id for target in statement.targets if isinstance(target, ast.Name))
    if isinstance(statement.value, ast.Name):
        return Bind(targets, statement.value.id)
    if isinstance(statement.value, ast.Constant) and statement.value.value is None:
        return Bind(targets, None)
    return None


def result_name(statement: ast.stmt, following: ast.stmt | None) -> str:
    """The name under which an op's result lives on.

    For an in-place statement that is the alias right after it (`x += y; z = x` leaves `z`).
    """
    if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
        return statement.targets[0].id
    target = written_name(statement)
    if target is None:
        return ""
    bind = as_bind(following) if following is not None else None
    return bind.targets[0] if bind is not None and bind.source == target else target


def written_name(statement: ast.stmt) -> str | None:
    """The variable an augmented assignment or a subscript write changes in place."""
    target: ast.expr | None = None
    if isinstance(statement, ast.AugAssign):
        target = statement.target
    elif isinstance(statement, ast.Assign):
        target = statement.targets[0]
    if isinstance(target, ast.Subscript):
        target = target.value
    return target.id if isinstance(target, ast.Name) else None
