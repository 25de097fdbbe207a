"""timm: every architecture, and every published variant of it that has other sizes."""

from __future__ import annotations

import torch

from ..model import Entry, Model


def entries() -> list[Entry]:
    import timm

    names = [*timm.list_models(), *timm.list_pretrained()]
    found: dict[tuple, Entry] = {}
    for name in names:
        config = timm.get_pretrained_cfg(name)
        size = None if config is None else (tuple(config.input_size), config.num_classes)
        # Weights of one architecture that were trained on other data are the same graph.
        key = (name.split(".")[0], size)
        found.setdefault(key, Entry("timm", name, "timm"))
    return list(found.values())


def build(entry: Entry) -> Model:
    import timm

    module = timm.create_model(entry.name, pretrained=False)
    config = module.pretrained_cfg
    size = config.get("input_size") or (3, 224, 224)
    return Model(
        module,
        (torch.randn(1, *size),),
        facts={"heuristic_tag": "computer_vision"},
    )
