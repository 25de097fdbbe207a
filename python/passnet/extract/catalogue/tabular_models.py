"""Networks for tables: rtdl_revisiting_models, and embeddings of numbers from rtdl_num_embeddings before a small network."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from ..model import Entry, Model
from . import by_class

_SOURCE = "tabular"
_ROWS = 256
_NUMBERS = 32
_CATEGORIES = [4, 12, 50, 200, 7]
_CLASSES = 2
_RTDL = "rtdl_revisiting_models"
_EMBEDDINGS: dict[str, dict[str, Any]] = {
    "LinearEmbeddings": {},
    "LinearReLUEmbeddings": {},
    "PeriodicEmbeddings": {"lite": False},
    "PeriodicEmbeddings_lite": {"lite": True},
}


def entries() -> list[Entry]:
    rows = [_ROWS, _NUMBERS]
    found = []
    for blocks in (2, 3, 6):
        for width in (192, 512):
            common = {"d_in": _NUMBERS, "d_out": _CLASSES, "n_blocks": blocks, "d_block": width}
            found.append(_entry(f"mlp_{blocks}_{width}", f"{_RTDL}:MLP", {**common, "dropout": 0.1}, [rows]))
            residual = {**common, "d_hidden_multiplier": 2.0, "dropout1": 0.15, "dropout2": 0.0}
            found.append(_entry(f"resnet_{blocks}_{width}", f"{_RTDL}:ResNet", residual, [rows]))
        for name in ("numbers", "categories", "both"):
            numbers = 0 if name == "categories" else _NUMBERS
            categories = [] if name == "numbers" else _CATEGORIES
            found.append(Entry(_SOURCE, f"ft_transformer_{name}_{blocks}", _SOURCE, {"numbers": numbers, "categories": categories, "blocks": blocks}))
    for name, settings in _EMBEDDINGS.items():
        for width in (16, 48):
            options = {"embedding": name.split("_")[0], "settings": {"d_embedding": width, **settings}}
            found.append(Entry(_SOURCE, f"{name}_{width}", _SOURCE, options))
    return found


def _entry(name: str, made: str, settings: dict[str, Any], inputs: list[Any]) -> Entry:
    return by_class.entry(_SOURCE, name, made, settings, inputs, "other")


def build(entry: Entry) -> Model:
    options = entry.options
    if "class" in options:
        return by_class.build(entry)
    numbers = torch.randn(_ROWS, _NUMBERS)
    if "embedding" in options:
        import rtdl_num_embeddings

        width = options["settings"]["d_embedding"]
        embedding = getattr(rtdl_num_embeddings, options["embedding"])(_NUMBERS, **options["settings"])
        layers = (nn.Linear(_NUMBERS * width, 256), nn.ReLU(), nn.Linear(256, _CLASSES))
        return Model(nn.Sequential(embedding, nn.Flatten(), *layers), (numbers,), facts={"heuristic_tag": "other"})
    return _ft_transformer(options, numbers)


def _ft_transformer(options: dict[str, Any], numbers: torch.Tensor) -> Model:
    import rtdl_revisiting_models as package

    from ..metadata import Range

    settings = package.FTTransformer.get_default_kwargs(options["blocks"])
    cardinalities = options["categories"]
    module = package.FTTransformer(n_cont_features=options["numbers"], cat_cardinalities=cardinalities, d_out=_CLASSES, **settings)
    columns = [torch.randint(0, count, (_ROWS, 1)) for count in cardinalities]
    categories = torch.cat(columns, 1) if columns else None
    # One range for all columns: the smallest number of categories is legal in each.
    legal = [] if categories is None else [(categories, Range(0, min(cardinalities) - 1))]
    return Model(module, (numbers if options["numbers"] else None, categories), ranges=legal, facts={"heuristic_tag": "other"})
