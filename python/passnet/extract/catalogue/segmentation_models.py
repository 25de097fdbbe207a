"""segmentation_models_pytorch: every architecture with every encoder.

Not every encoder suits every architecture (some cannot be dilated, some lack a scale); which do is left to the package:
the others fail with its own words.
"""

from __future__ import annotations

import torch

from ..model import Entry, Model

_PIXELS = 256
_CLASSES = 21
# DPT takes vision transformers of timm instead of the package's own encoders.
_TRANSFORMERS = "dpt"
_VISION_TRANSFORMERS = [
    "tu-vit_tiny_patch16_224", "tu-vit_small_patch16_224", "tu-vit_base_patch16_224", "tu-vit_large_patch16_224",
    "tu-deit_base_patch16_224", "tu-beit_base_patch16_224", "tu-vit_base_patch16_dinov3",
]  # fmt: skip


def entries() -> list[Entry]:
    import segmentation_models_pytorch as package

    found = []
    for architecture in package.MODEL_ARCHITECTURES_MAPPING:
        encoders = package.encoders.get_encoder_names()
        for encoder in _VISION_TRANSFORMERS if architecture == _TRANSFORMERS else encoders:
            options = {"architecture": architecture, "encoder": encoder}
            found.append(Entry("segmentation_models_pytorch", f"{architecture}_{encoder}", "segmentation_models_pytorch", options))
    return found


def build(entry: Entry) -> Model:
    import segmentation_models_pytorch as package

    architecture = entry.options["architecture"]
    pixels = 224 if architecture == _TRANSFORMERS else _PIXELS
    module = package.create_model(
        architecture, encoder_name=entry.options["encoder"], encoder_weights=None, in_channels=3, classes=_CLASSES
    )
    return Model(module, (torch.randn(1, 3, pixels, pixels),), facts={"heuristic_tag": "computer_vision"})
