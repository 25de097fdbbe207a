"""open_clip: the vision and the text tower of every configuration that the package has.

A tower that several configurations share is one model, named by the shortest of their names. Text towers that are models of the hub are left
out: their sizes are not in the package.
"""

from __future__ import annotations

import json
from typing import Any

import torch

from ..metadata import Range
from ..model import Entry, Model

# What says nothing about the graph.
_SILENT = {"hf_tokenizer_name", "tokenizer_kwargs", "timm_model_pretrained", "timm_drop", "timm_drop_path", "patch_dropout"}


def entries() -> list[Entry]:
    import open_clip

    found: dict[str, Entry] = {}
    for name in sorted(open_clip.list_models(), key=lambda name: (len(name), name)):
        config = open_clip.get_model_config(name)
        for tower in ("vision", "text"):
            part = config[f"{tower}_cfg"]
            if "hf_model_name" in part:
                continue
            said = {key: value for key, value in part.items() if key not in _SILENT}
            quick_gelu = config.get("quick_gelu", False)
            key = json.dumps([tower, said, config["embed_dim"], quick_gelu], sort_keys=True)
            options = {"tower": tower, "config": part, "embed_dim": config["embed_dim"], "quick_gelu": quick_gelu}
            found.setdefault(key, Entry("open_clip", f"{name}_{tower}", "open_clip", options))
    return list(found.values())


def build(entry: Entry) -> Model:
    from open_clip import model

    options = entry.options
    config = dict(options["config"])
    common: dict[str, Any] = {"embed_dim": options["embed_dim"], "quick_gelu": options["quick_gelu"]}
    if options["tower"] == "vision":
        config["timm_model_pretrained"] = False
        module = model._build_vision_tower(vision_cfg=config, **common)
        size = config.get("image_size", 224)
        rows, columns = size if isinstance(size, (list, tuple)) else (size, size)
        return Model(module, (torch.randn(1, 3, rows, columns),), facts={"heuristic_tag": "computer_vision"})
    module = model._build_text_tower(text_cfg=config, **common)
    vocabulary = module.vocab_size
    tokens = torch.randint(1, vocabulary, (1, module.context_length))
    return Model(module, (tokens,), ranges=[(tokens, Range(0, vocabulary - 1))], facts={"heuristic_tag": "nlp"})
