"""Runs statements of a graph on meta tensors, with real values beside them where they are known.

Meta tensors give shapes for models of any size. What meta cannot tell (`x.item()`, sizes that
depend on data) is taken from a second run on the CPU, kept only for values that come from recorded
data and constants and that stay small.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import torch

from .statements import Bind, Op, written_name

Env = dict[str, Any]

DEVICE_WORD = re.compile(r"(cuda|cpu)(:\d+)?")
# Statements that change interpreter state: run twice they would nest, count or assert twice.
EFFECT = re.compile(r"_functorch|autocast|_set_grad_enabled|_log_api_usage|_assert_scalar|_check")
# Their values are not recorded anywhere, so a real run would invent data.
RANDOM = frozenset({"rand", "randn", "randint", "rand_like", "randn_like", "empty", "empty_like"})


class DeviceMapper(ast.NodeTransformer):
    """Replaces every device a statement names by the variable `_device`."""

    def visit_Call(self, node: ast.Call) -> ast.AST:
        callee = ast.unparse(node.func)
        if callee in ("device", "torch.device"):
            return ast.copy_location(ast.Name("_device", ast.Load()), node)
        if EFFECT.search(callee):
            return node
        return self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        if isinstance(node.value, str) and DEVICE_WORD.fullmatch(node.value):
            return ast.copy_location(ast.Name("_device", ast.Load()), node)
        return node


@dataclass
class Step:
    """What one op gave: a value on meta and, where known, on the CPU; or why there is none."""

    meta: Any = None
    real: Any = None
    meta_error: Exception | None = None
    real_error: Exception | None = None
    real_ran: bool = False

    @property
    def error(self) -> Exception | None:
        return None if self.meta_error is None or self.has_real else self.meta_error

    @property
    def has_real(self) -> bool:
        return self.real_ran and self.real_error is None


@dataclass
class DualRun:
    """The two environments of a graph while its statements run one after the other."""

    max_real_elements: int = 1 << 16
    meta: Env = field(default_factory=dict)
    real: Env = field(default_factory=dict)

    def __post_init__(self) -> None:
        for env, place in ((self.meta, "meta"), (self.real, "cpu")):
            env.update(torch=torch, inf=float("inf"), _device=torch.device(place))

    def __enter__(self) -> DualRun:
        self._grad = torch.is_grad_enabled()
        return self

    def __exit__(self, *_: object) -> None:
        """Undo what an unfinished graph left switched on in the process."""
        torch.set_grad_enabled(self._grad)
        while torch._C._functorch.peek_interpreter_stack() is not None:
            torch._C._functorch._vmap_decrement_nesting()

    def bind_tensor(self, name: str, meta: torch.Tensor, real: torch.Tensor | None) -> None:
        self.meta[name] = meta
        if real is not None:
            self.real[name] = real

    def bind_scalar(self, name: str, value: int | float | bool) -> None:
        self.meta[name] = self.real[name] = value

    def bind(self, step: Bind) -> None:
        """Apply an alias or a clean-up to both environments."""
        for env in (self.meta, self.real):
            for target in step.targets:
                if step.source is None or step.source not in env:
                    env.pop(target, None)
                else:
                    env[target] = env[step.source]

    def run(self, op: Op) -> Step:
        """Run one op in both environments; never raises for what the statement does."""
        statement = DeviceMapper().visit(op.statement)
        code = compile(ast.Module([statement], []), "<graph>", "exec")
        step = Step()
        if op.name not in names_read(statement):
            self.real.pop(op.name, None)
        if self._can_run_real(statement):
            self._run_real(code, result_variable(statement, op), step)
        elif may_write(statement):
            self._forget(statement)
        try:
            with torch.device("meta"):
                exec(code, self.meta)
            step.meta = self.meta.get(result_variable(statement, op))
        except Exception as error:  # any failure of the statement is a result
            step.meta_error = error
            if step.has_real:
                step.meta = self.meta[result_variable(statement, op)] = to_meta(step.real)
        return step

    def _run_real(self, code: Any, name: str, step: Step) -> None:
        step.real_ran = True
        try:
            exec(code, self.real)
            step.real = self.real.get(name)
        except Exception as error:  # as above
            step.real_error = error
            self.real.pop(name, None)
            return
        if any(t.numel() > self.max_real_elements for t in tensors_in(step.real)):
            self.real.pop(name, None)

    def _can_run_real(self, statement: ast.stmt) -> bool:
        if EFFECT.search(ast.unparse(statement)):
            return False
        for node in ast.walk(statement):
            if isinstance(node, ast.Attribute) and node.attr in RANDOM:
                return False
        return all(name in self.real for name in names_read(statement) if name in self.meta)

    def _forget(self, statement: ast.stmt) -> None:
        """Drop real values that a write, done on meta only, has made stale."""
        touched = {
            tensor.untyped_storage().data_ptr()
            for name in names_read(statement)
            for tensor in tensors_in(self.real.get(name))
        }
        for name in list(self.real):
            if any(t.untyped_storage().data_ptr() in touched for t in tensors_in(self.real[name])):
                del self.real[name]


def result_variable(statement: ast.stmt, op: Op) -> str:
    """Where the result lies right after the statement, before any alias that follows it."""
    return written_name(statement) or op.name


def names_read(statement: ast.stmt) -> set[str]:
    """Variables a statement reads, or changes in place."""
    names = {
        node.id
        for node in ast.walk(statement)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)
    }
    if isinstance(statement, ast.AugAssign) and isinstance(statement.target, ast.Name):
        names.add(statement.target.id)
    return names


def may_write(statement: ast.stmt) -> bool:
    """Whether a statement may change a tensor in place."""
    if isinstance(statement, ast.AugAssign):
        return True
    if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Subscript):
        return True
    for node in ast.walk(statement):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            keywords = {k.arg for k in node.keywords}
            if node.func.attr.endswith("_") or keywords & {"inplace", "out"}:
                return True
    return False


def tensors_in(value: Any) -> Iterator[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from tensors_in(item)


def to_meta(value: Any) -> Any:
    """The same value without data; layout kept."""
    if isinstance(value, torch.Tensor):
        return torch.empty_strided(value.shape, value.stride(), dtype=value.dtype, device="meta")
    if isinstance(value, (list, tuple)):
        return [to_meta(item) for item in value]
    return value
