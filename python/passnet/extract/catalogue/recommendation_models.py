"""deepctr-torch: predicting clicks, over three widths of embeddings."""

from __future__ import annotations

from typing import Any

import torch

from ..model import Entry, Model

_SOURCE = "deepctr_torch"
_ROWS = 256
_VOCABULARIES = [1_000, 100, 5_000, 24, 7, 300]
_NUMBERS = 8
# Classes that take columns for a linear part and for a deep part, or for a deep part alone.
_BOTH = ["WDL", "DeepFM", "xDeepFM", "AFM", "AFN", "AutoInt", "CCPM", "DCN", "DCNMix", "DIFM", "FiBiNET", "IFM", "NFM", "ONN"]
_DEEP = ["PNN", "MMOE", "PLE", "SharedBottom", "ESMM"]
_VARIANTS: dict[str, dict[str, Any]] = {
    "DCN_matrix": {"cross_parameterization": "matrix"},
    "PNN_outer": {"use_outter": True},
    "DeepFM_norm": {"dnn_use_bn": True},
    "xDeepFM_norm": {"dnn_use_bn": True},
    "AutoInt_plain": {"att_res": False},
    "FiBiNET_each": {"bilinear_type": "each"},
}
_WIDTHS = (4, 8, 16)


def entries() -> list[Entry]:
    named = [(name, {}) for name in (*_BOTH, *_DEEP)] + list(_VARIANTS.items())
    return [
        Entry(_SOURCE, f"{name}_{width}", _SOURCE, {"class": name.split("_")[0], "width": width, "settings": settings})
        for name, settings in named
        for width in _WIDTHS
    ]


def build(entry: Entry) -> Model:
    from deepctr_torch import models
    from deepctr_torch.inputs import DenseFeat, SparseFeat

    name = entry.options["class"]
    columns = [SparseFeat(f"c{place}", count, entry.options["width"]) for place, count in enumerate(_VOCABULARIES)]
    if name not in ("AFM", "AFN", "CCPM"):
        columns += [DenseFeat(f"n{place}", 1) for place in range(_NUMBERS)]
    sides = [columns] if name in _DEEP else [columns, columns]
    module = getattr(models, name)(*sides, **entry.options["settings"])
    # The package takes one table of floats, whose first columns are numbers of categories.
    categories = torch.stack([torch.randint(0, min(_VOCABULARIES), (_ROWS,)) for _ in _VOCABULARIES], 1).float()
    table = torch.cat([categories, torch.rand(_ROWS, len(columns) - len(_VOCABULARIES))], 1)
    return Model(module, (table,), facts={"heuristic_tag": "other"})
