"""timm: every architecture, every published variant of it that has other sizes, and each without its head as detectors use it."""

from __future__ import annotations

import torch

from ..model import Entry, Model

_FEATURES = ".features"


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
    # Most architectures can return the features of their stages; the others fail with the package's words.
    backbones = [Entry("timm", f"{name}{_FEATURES}", "timm", {"backbone": name}) for name in timm.list_models()]
    return [*found.values(), *backbones]


def build(entry: Entry) -> Model:
    import timm

    backbone = entry.options.get("backbone")
    options = {} if backbone is None else {"features_only": True}
    module = timm.create_model(backbone or entry.name, pretrained=False, **options)
    config = module.pretrained_cfg
    size = config.get("input_size") or (3, 224, 224)
    return Model(
        module,
        (torch.randn(1, *size),),
        facts={"heuristic_tag": "computer_vision"},
    )
