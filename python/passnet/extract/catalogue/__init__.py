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

# Of a family's or a model's name.
_LONGEST_NAME = 200


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
    """The models of a list, each once. Somebody may have edited it: every line is looked at before anything is captured."""
    entries: dict[str, Entry] = {}
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if not line.strip():
            continue
        try:
            entry = Entry(**json.loads(line))
            _check(entry)
        except (TypeError, ValueError) as error:
            hint = "`--list-only` writes such lists, one JSON object a line"
            raise CaptureError("bad request", f"{path}:{number}: no model: {error} (hint: {hint})") from error
        entries[entry.id] = entry
    return list(entries.values())


def _check(entry: Entry) -> None:
    """Family and name become folders below the output, so they may not lead out of it."""
    texts = {"family": entry.family, "name": entry.name, "source": entry.source}
    for field, text in texts.items():
        if not isinstance(text, str) or not text.isprintable() or len(text) > _LONGEST_NAME:
            raise ValueError(f"`{field}` is no name")
        if any(part in ("", ".", "..") for part in text.split("/")) or "\\" in text:
            raise ValueError(f"`{field}` is no name: {text!r}")
    if not isinstance(entry.options, dict):
        raise ValueError("`options` is no object")
