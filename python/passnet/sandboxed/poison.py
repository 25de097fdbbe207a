"""Tensors that PyTorch's operators refuse to work on: how the compatibility tier keeps a pass to its own kernels.

A wrapper's arguments are re-typed to `Poisoned`, and so is every tensor it makes: allocations, conversions and questions
about shapes are allowed, anything that computes is an `UnauthorizedOperator`. Kernels take addresses only and do not
notice. Unlike the reference's, it holds in every call, inside lists, and for tensors that no argument had a part in. It
runs in the process of the pass, so it stops the careless and the usual tricks, not whoever rewrites Python; that process
is believed nothing anyway.
"""

import contextlib
from collections.abc import Iterator
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode, _disable_current_modes
from torch.utils._pytree import tree_map
from torch.utils.weak import WeakIdKeyDictionary

# The reference's list, and the other spellings of the same allocations.
ALLOWED = frozenset(
    f"aten::{name}"
    for name in (
        "empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided", "zeros", "zeros_like", "new_zeros", "ones",
        "ones_like", "new_ones", "full", "full_like", "new_full", "lift_fresh", "alias", "detach", "_to_copy", "size", "sym_size",
        "stride", "sym_stride", "dim", "numel", "sym_numel", "storage_offset", "sym_storage_offset",
    )
) | {"prim::device"}

# The tensor behind each poisoned one; they share their memory.
_PLAIN = WeakIdKeyDictionary()


class UnauthorizedOperator(RuntimeError):
    """A pass let PyTorch compute."""


def check(operator: Any) -> None:
    name = operator._schema.name if hasattr(operator, "_schema") else str(operator)
    if name not in ALLOWED:
        raise UnauthorizedOperator(f"unauthorized operator {operator}: a pass computes with its own kernels")


class Poisoned(torch.Tensor):
    __torch_function__ = torch._C._disabled_torch_function_impl

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        check(func)
        return poison(func(*plain(args), **plain(kwargs or {})))


class Watch(TorchDispatchMode):
    """While it is on, nothing computes in this thread, whatever tensors it has."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        check(func)
        return poison(func(*args, **(kwargs or {})))


def poison(value: Any) -> Any:
    def one(item: Any) -> Any:
        if not isinstance(item, torch.Tensor) or isinstance(item, Poisoned):
            return item
        poisoned = torch.Tensor._make_subclass(Poisoned, item)
        _PLAIN[poisoned] = item
        return poisoned

    return tree_map(one, value)


def plain(value: Any) -> Any:
    return tree_map(lambda item: _PLAIN[item] if isinstance(item, Poisoned) else item, value)


@contextlib.contextmanager
def unwatched() -> Iterator[None]:
    """For what Triton itself does with PyTorch around a kernel."""
    with _disable_current_modes():
        yield


def call(wrapper: Any, arguments: list[Any]) -> Any:
    """The wrapper's result, as plain tensors."""
    with Watch():
        result = wrapper(*poison(arguments))
    return plain(result)


def teach_interpreter() -> None:
    """Triton's interpreter copies tensors to the host and back with PyTorch; kernels run between, and stay watched."""
    from triton.runtime.interpreter import GridExecutor

    def unpoisoned(method: Any) -> Any:
        def around(self: Any, *arguments: Any) -> Any:
            with unwatched():
                return method(self, *plain(arguments))

        return around

    for name in ("_init_args_hst", "_restore_args_dev"):
        setattr(GridExecutor, name, unpoisoned(getattr(GridExecutor, name)))
