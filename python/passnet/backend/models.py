"""Whole models for measuring, by name: a factory of one's own, an architecture of timm, a configuration of transformers.

Weights are random, nothing is downloaded.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from passnet.extract.errors import CaptureError
from passnet.extract.model import Entry, Model, from_file


def build(spec: str) -> Model:
    """`FILE.py:factory`, `timm:NAME` or `hf:MODEL_TYPE[,setting=value…]`."""
    kind, _, name = spec.partition(":")
    if kind == "timm":
        from passnet.extract.catalogue import timm_models

        return timm_models.build(Entry("timm", name, "timm"))
    if kind == "hf":
        return of_transformers(name)
    return from_file(spec)()


def of_transformers(name: str) -> Model:
    """The bare model of a configuration with its defaults, some of them changed."""
    from transformers import AutoConfig, AutoModel

    from passnet.extract.catalogue.transformers_inputs import inputs_of

    model_type, *changes = name.split(",")
    settings = dict(change.split("=", 1) for change in changes)
    config = AutoConfig.for_model(model_type, **{key: _value(text) for key, text in settings.items()})
    if hasattr(config, "use_cache"):
        config.use_cache = False
    return inputs_of(AutoModel.from_config(config), config)


def _value(text: str) -> Any:
    for read in (int, float):
        try:
            return read(text)
        except ValueError:
            continue
    return {"true": True, "false": False}.get(text.lower(), text)


def prepared(model: Model, batch: int, device: torch.device, dtype: torch.dtype) -> tuple[torch.nn.Module, Callable[[], Any]]:
    """The module ready for inference, and a function that calls something with its inputs at this batch size."""

    def moved(value: Any) -> Any:
        if not isinstance(value, torch.Tensor):
            return value
        value = value.to(device)
        value = value.to(dtype) if value.is_floating_point() else value
        return value.repeat(batch, *[1] * (value.dim() - 1)) if value.dim() and value.shape[0] == 1 else value

    module = model.module.eval().to(device=device, dtype=dtype)
    args = tuple(moved(value) for value in model.args)
    kwargs = {name: moved(value) for name, value in model.kwargs.items()}
    if not args and not kwargs:
        raise CaptureError("no inputs", "the model takes no inputs")
    return module, lambda called: called(*args, **kwargs)


def tensors(result: Any) -> list[torch.Tensor]:
    """All tensors of what a model gave, in order."""
    if isinstance(result, torch.Tensor):
        return [result]
    if isinstance(result, dict) or hasattr(result, "to_tuple"):
        result = result.to_tuple() if hasattr(result, "to_tuple") else list(result.values())
    if isinstance(result, (tuple, list)):
        return [leaf for item in result for leaf in tensors(item)]
    return []
