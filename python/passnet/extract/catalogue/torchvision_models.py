"""torchvision: classification, segmentation, detection, video and optical flow."""

from __future__ import annotations

import torch

from ..model import Entry, Model

_VIDEO_FRAMES = 16


def entries() -> list[Entry]:
    from torchvision.models import list_models

    return [Entry("torchvision", name, "torchvision") for name in list_models()]


def build(entry: Entry) -> Model:
    from torchvision.models import get_model, get_model_weights

    group = _group(entry.name)
    options = {"weights_backbone": None} if group in ("detection", "segmentation") else {}
    module = get_model(entry.name, weights=None, **options)
    size = 224
    if group == "classification":
        weights = list(get_model_weights(entry.name))
        size = weights[0].transforms().crop_size[0] if weights else size
    facts = {"heuristic_tag": "computer_vision"}
    if group == "video":
        return Model(module, (torch.randn(1, 3, _VIDEO_FRAMES, *_video_size(entry.name)),), facts=facts)
    if group == "optical_flow":
        return Model(module, (torch.randn(1, 3, 128, 128), torch.randn(1, 3, 128, 128)), facts=facts)
    if group == "detection":
        return Model(module, ([torch.rand(3, 320, 320)],), facts=facts)
    return Model(module, (torch.randn(1, 3, size, size),), facts=facts)


def _group(name: str) -> str:
    from torchvision.models import detection, optical_flow, quantization, segmentation, video

    for module in (detection, optical_flow, segmentation, video):
        if name in dir(module):
            return module.__name__.rsplit(".", 1)[-1]
    return "quantized" if name.removeprefix("quantized_") in dir(quantization) else "classification"


def _video_size(name: str) -> tuple[int, int]:
    return (112, 112) if "r" in name.split("_")[0] else (224, 224)
