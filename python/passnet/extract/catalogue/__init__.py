"""The models of the dataset, from packages of PyPI alone. Each source lists its models and builds one of them.

Listing imports no model and costs seconds; building happens in the process that captures.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable
from fnmatch import fnmatchcase
from pathlib import Path

from ..errors import CaptureError
from ..model import Entry, Model, from_file
from . import (
    configurations,
    diffusers_models,
    geometric,
    monai_models,
    open_clip_models,
    protein_models,
    pytorchcv_models,
    recommendation_models,
    segmentation_models,
    tabular_models,
    timm_models,
    torchaudio_models,
    torchvision_models,
    transformers_forms,
    transformers_models,
    vit_pytorch_models,
    x_transformers_models,
)

SOURCES = {
    "timm": timm_models,
    "torchvision": torchvision_models,
    "transformers": transformers_models,
    "torchaudio": torchaudio_models,
    "torch_geometric": geometric,
    "diffusers": diffusers_models,
    "open_clip": open_clip_models,
    "segmentation_models_pytorch": segmentation_models,
    "pytorchcv": pytorchcv_models,
    "transformers_forms": transformers_forms,
    "vit_pytorch": vit_pytorch_models,
    "x_transformers": x_transformers_models,
    "monai": monai_models,
    "tabular": tabular_models,
    "deepctr_torch": recommendation_models,
    "esm": protein_models,
}


def entries(sources: Iterable[str], only: str = "*") -> list[Entry]:
    """All models of some sources, in an order that mixes families, the same each time."""
    found: list[Entry] = []
    for name in sources:
        if name not in SOURCES:
            raise CaptureError("bad request", f"there is no catalogue `{name}`: {', '.join(SOURCES)}")
        found += SOURCES[name].entries()
    chosen = {entry.id: entry for entry in found if fnmatchcase(entry.id, only)}
    return sorted(chosen.values(), key=lambda entry: hashlib.sha256(entry.id.encode()).digest())


def build(entry: Entry) -> Callable[[], Model]:
    """How the model of an entry is made."""
    if entry.source == "file":
        return from_file(entry.options["factory"])
    if entry.source == configurations.SOURCE:
        return lambda: configurations.build(entry)
    if entry.source not in SOURCES:
        raise CaptureError("bad request", f"there is no catalogue `{entry.source}`")
    return lambda: SOURCES[entry.source].build(entry)


def write_list(path: Path, listed: Iterable[Entry]) -> None:
    lines = [
        {"family": entry.family, "name": entry.name, "source": entry.source, "options": entry.options}
        for entry in listed
    ]
    path.write_text("".join(json.dumps(line, sort_keys=True) + "\n" for line in lines))


def read_list(path: Path) -> list[Entry]:
    return [Entry(**json.loads(line)) for line in path.read_text().splitlines() if line.strip()]
