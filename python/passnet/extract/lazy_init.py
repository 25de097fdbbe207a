"""Weights that are described but not written.

Inside `LazyInit`, an initialiser of a large tensor (`normal_`, `fill_`, …, and simple arithmetic after it) is recorded
as a recipe instead of being run: the tensor's memory stays untouched, so a model of any size costs address space only.
Whatever reads such a tensor makes its recipe run first, so construction sees the values it would have seen.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import torch
import torch.nn.init
from torch.utils._python_dispatch import TorchDispatchMode

aten = torch.ops.aten

# Smaller tensors are written as usual: their values are wanted, or cost nothing.
LAZY_ELEMENTS = 16_384
# Of a recipe's values so many are drawn to measure its mean and spread.
SAMPLE_ELEMENTS = 65_536
# A write to part of a tensor (the padding row of a table) does not count for statistics up to this share.
SMALL_SHARE = 0.02

_FILLS = {
    aten.normal_.default, aten.uniform_.default, aten.fill_.Scalar, aten.zero_.default,
    aten.bernoulli_.float, aten.exponential_.default,
}  # fmt: skip
# A creation becomes `empty` and this in-place step with these arguments.
_CREATIONS: dict[Any, tuple[Any, tuple[Any, ...]]] = {
    aten.zeros.default: (aten.zero_.default, ()),
    aten.ones.default: (aten.fill_.Scalar, (1,)),
    aten.randn.default: (aten.normal_.default, ()),
    aten.rand.default: (aten.uniform_.default, ()),
    aten.zeros_like.default: (aten.zero_.default, ()),
    aten.ones_like.default: (aten.fill_.Scalar, (1,)),
    aten.randn_like.default: (aten.normal_.default, ()),
    aten.rand_like.default: (aten.uniform_.default, ()),
}
_LIKE = {aten.zeros_like.default, aten.ones_like.default, aten.randn_like.default, aten.rand_like.default}
_ARITHMETIC = {
    "mul", "div", "add", "sub", "clamp", "clamp_min", "clamp_max", "erfinv", "neg", "abs", "sqrt", "exp", "log",
    "pow", "sin", "cos", "sigmoid", "tanh",
}  # fmt: skip
_COPIES = {aten.clone.default, aten._to_copy.default}
# These look at sizes only.
_SHAPE_ONLY = {
    aten.empty_like.default, aten.new_empty.default, aten.new_zeros.default, aten.new_ones.default,
    aten.new_full.default, aten.new_empty_strided.default, aten.full_like.default,
}  # fmt: skip


@dataclass
class Step:
    """One in-place operation on a tensor of the recipe's storage."""

    operation: Any
    arguments: tuple[Any, ...]
    options: dict[str, Any]
    size: tuple[int, ...]
    stride: tuple[int, ...]
    offset: int
    whole: bool


@dataclass
class Recipe:
    """How the values of a storage come about. Holds the storage, so that its address cannot be given away."""

    storage: torch.UntypedStorage
    dtype: torch.dtype
    steps: list[Step] = field(default_factory=list)

    def run(self) -> None:
        for step in self.steps:
            target = torch.empty(0, dtype=self.dtype)
            target.set_(self.storage, step.offset, step.size, step.stride)
            step.operation(target, *step.arguments, **step.options)

    def key(self) -> str | None:
        """The same for recipes of the same distribution; none where a step holds values of its own."""
        whole = [step for step in self.steps if step.whole]
        if any(_tensors(list(step.arguments)) for step in whole):
            return None
        return str([(str(step.operation), step.arguments) for step in whole]) + str(self.dtype)

    def sample(self, elements: int) -> torch.Tensor:
        """Values of the same distribution, the same ones each time."""
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            drawn = torch.empty(min(elements, SAMPLE_ELEMENTS), dtype=self.dtype)
            for step in self.steps:
                if step.whole:
                    options = {name: value for name, value in step.options.items() if name != "generator"}
                    step.operation(drawn, *step.arguments, **options)
        return drawn


def _tensors(value: Any) -> list[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, (list, tuple)):
        return [tensor for element in value for tensor in _tensors(element)]
    return []


def _is_number(value: Any) -> bool:
    if isinstance(value, torch.Tensor):
        return value.dim() == 0
    return value is None or isinstance(value, (int, float))


class LazyInit(TorchDispatchMode):
    """Postpones initialisers; afterwards `sample_of` answers for tensors that were never written."""

    def __init__(self, threshold: int = LAZY_ELEMENTS) -> None:
        super().__init__()
        self.threshold = threshold
        self.recipes: dict[int, Recipe] = {}
        self._views: dict[Any, bool] = {}
        self._samples: dict[tuple[str | None, int], torch.Tensor] = {}

    def __enter__(self) -> LazyInit:
        self._draw_truncated = torch.nn.init._no_grad_trunc_normal_
        torch.nn.init._no_grad_trunc_normal_ = self._truncated
        super().__enter__()
        return self

    def __exit__(self, *raised: Any) -> None:
        super().__exit__(*raised)
        torch.nn.init._no_grad_trunc_normal_ = self._draw_truncated

    def _truncated(self, tensor, mean, std, a, b, generator=None):  # noqa: ANN001, ANN202
        """A truncated normal in steps that a recipe can have: newer PyTorch draws again what lies outside, by looking."""
        if not (self._is_large(tensor) and self._is_whole(tensor)):
            return self._draw_truncated(tensor, mean, std, a, b, generator=generator)
        low, high = (math.erf((bound - mean) / (std * math.sqrt(2.0))) for bound in (a, b))
        with torch.no_grad():
            tensor.uniform_(low, high, generator=generator)
            return tensor.erfinv_().mul_(std * math.sqrt(2.0)).add_(mean).clamp_(min=a, max=b)

    def sample_of(self, tensor: torch.Tensor) -> torch.Tensor | None:
        recipe = self._recipe(tensor)
        if recipe is None:
            return None
        key = (recipe.key(), min(tensor.numel(), SAMPLE_ELEMENTS))
        if key[0] is None:
            return recipe.sample(tensor.numel())
        if key not in self._samples:
            self._samples[key] = recipe.sample(tensor.numel())
        return self._samples[key]

    def write_all(self) -> None:
        """Runs every postponed initialiser."""
        for recipe in self.recipes.values():
            recipe.run()
        self.recipes.clear()

    def __torch_dispatch__(self, operation, types, args=(), kwargs=None):  # noqa: ANN001, ANN204
        options = kwargs or {}
        if operation in _CREATIONS:
            made = self._create(operation, args, options)
            if made is not None:
                return made
        if not self.recipes and operation not in _FILLS:
            return operation(*args, **options)
        postponed = self._postpone(operation, args, options)
        if postponed is not None:
            return postponed
        if not self._is_view(operation) and operation not in _SHAPE_ONLY:
            for tensor in _tensors(list(args)) + _tensors(list(options.values())):
                self._write(tensor)
        return operation(*args, **options)

    def _recipe(self, tensor: torch.Tensor) -> Recipe | None:
        if tensor.device.type != "cpu" or tensor.layout != torch.strided:
            return None
        return self.recipes.get(tensor.untyped_storage()._cdata)

    def _write(self, tensor: torch.Tensor) -> None:
        recipe = self._recipe(tensor)
        if recipe is not None:
            del self.recipes[recipe.storage._cdata]
            recipe.run()

    def _is_view(self, operation: Any) -> bool:
        """Whether the operation only makes another tensor of the same memory."""
        known = self._views.get(operation)
        if known is None:
            arguments = operation._schema.arguments
            written = any(a.alias_info is not None and a.alias_info.is_write for a in arguments)
            returned = any(r.alias_info is not None for r in operation._schema.returns)
            known = self._views[operation] = returned and not written
        return known

    def _is_large(self, tensor: Any) -> bool:
        return (
            isinstance(tensor, torch.Tensor)
            and tensor.device.type == "cpu"
            and tensor.dtype.is_floating_point
            and tensor.numel() >= self.threshold
        )

    def _create(self, operation: Any, args: tuple, options: dict) -> torch.Tensor | None:
        step, arguments = _CREATIONS[operation]
        if operation in _LIKE:
            made = aten.empty_like.default(args[0], **options)
        else:
            given = {name: value for name, value in options.items() if name != "generator"}
            made = aten.empty.memory_format(args[0], **given)
        if self._is_large(made) and self._is_whole(made):
            self._begin(made).steps.append(self._step(step, made, arguments, {}))
            return made
        return step(made, *arguments) if made.device.type == "cpu" else None

    def _postpone(self, operation: Any, args: tuple, options: dict) -> Any:
        """Records the operation, if it is one that recipes can have; else None."""
        if not args or not isinstance(args[0], torch.Tensor):
            return None
        target = args[0]
        if operation in _FILLS:
            if self._is_large(target) and self._is_whole(target):
                self._begin(target).steps.append(self._step(operation, target, args[1:], options))
                return target
            return self._part(operation, target, args, options)
        recipe = self._recipe(target)
        if recipe is None:
            return None
        if operation is aten.copy_.default and self._recipe(args[1]) is None:
            return self._part(operation, target, (target, args[1].clone()), options)
        if operation in _COPIES:
            return self._copied(operation, target, recipe, options)
        name, overload = operation._schema.name.removeprefix("aten::"), operation._overloadname
        if name.removesuffix("_") not in _ARITHMETIC or not all(_is_number(a) for a in args[1:]):
            return None
        if name.endswith("_"):
            if self._is_whole(target):
                recipe.steps.append(self._step(operation, target, args[1:], options))
                return target
            return None
        in_place = getattr(getattr(aten, name + "_"), overload, None)
        if in_place is None or not self._is_whole(target):
            return None
        made = self._copied(aten.clone.default, target, recipe, {})
        self.recipes[made.untyped_storage()._cdata].steps.append(self._step(in_place, made, args[1:], options))
        return made

    def _copied(self, operation: Any, source: torch.Tensor, recipe: Recipe, options: dict) -> torch.Tensor | None:
        if set(options) - {"dtype", "memory_format"} or not self._is_whole(source):
            return None
        dtype = options.get("dtype") or source.dtype
        if not dtype.is_floating_point:
            return None
        made = aten.empty_like.default(source, dtype=dtype)
        fresh = self._begin(made)
        for step in recipe.steps:
            if step.whole:
                fresh.steps.append(self._step(step.operation, made, step.arguments, step.options))
        return made

    def _part(self, operation: Any, target: torch.Tensor, args: tuple, options: dict) -> torch.Tensor | None:
        recipe = self._recipe(target)
        if recipe is None:
            return None
        share = target.numel() * target.element_size() / max(recipe.storage.nbytes(), 1)
        if share > SMALL_SHARE or target.dtype != recipe.dtype:
            return None
        recipe.steps.append(self._step(operation, target, args[1:], options))
        return target

    def _is_whole(self, tensor: torch.Tensor) -> bool:
        used = tensor.numel() * tensor.element_size()
        return used == tensor.untyped_storage().nbytes()

    def _begin(self, tensor: torch.Tensor) -> Recipe:
        storage = tensor.untyped_storage()
        recipe = self.recipes[storage._cdata] = Recipe(storage, tensor.dtype)
        return recipe

    def _step(self, operation: Any, target: torch.Tensor, arguments: tuple, options: dict) -> Step:
        return Step(
            operation, tuple(arguments), dict(options), tuple(target.shape), target.stride(),
            target.storage_offset(), self._is_whole(target),
        )  # fmt: skip
