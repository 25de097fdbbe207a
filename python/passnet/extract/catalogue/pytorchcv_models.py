"""pytorchcv: every model of its provider, with inputs of the size that the model itself names."""

from __future__ import annotations

import torch

from ..metadata import Range
from ..model import Entry, Model

_FRAMES = 200
# Speech recognisers take frames of a spectrogram, and how many of them are speech.
_SPEECH = ("jasper", "quartznet")
# What takes other inputs than one image: the sizes of the package's own tests.
_SEVERAL = {
    "raft_things": [(1, 3, 240, 432), (1, 3, 240, 432)],
    "raft_small": [(1, 3, 240, 432), (1, 3, 240, 432)],
    "propainter_rfc": [(1, 5, 2, 240, 432), (1, 5, 1, 240, 432)],
    "pfpcnet": [(1, 1, 320, 240)],
    "superpointnet": [(1, 1, 240, 320)],
}
# Video inpainting steps through lists of frames outside of any graph, and talking faces want a speaker's number with a batch.
_LEFT_OUT = {"propainter", "propainter_ip", "voca8flame", "nvpattexp116bazel76", "visemenet20"}


def entries() -> list[Entry]:
    from pytorchcv.model_provider import _models

    # SVHN has as many classes as CIFAR-10 and images of the same size: the same graphs again.
    names = [name for name in _models if name not in _LEFT_OUT and not name.endswith("_svhn")]
    return [Entry("pytorchcv", name, "pytorchcv") for name in names]


def build(entry: Entry) -> Model:
    from pytorchcv.model_provider import get_model

    speech = entry.name.startswith(_SPEECH)
    # Spectrograms come from another package where the model is to begin with sound.
    module = get_model(entry.name, pretrained=False, **({"from_audio": False} if speech else {}))
    if speech:
        lengths = torch.tensor([_FRAMES])
        frames = torch.randn(1, 64, _FRAMES)
        return Model(module, (frames, lengths), ranges=[(lengths, Range(1, _FRAMES))], facts={"heuristic_tag": "audio"})
    sizes = _SEVERAL.get(entry.name) or [(1, getattr(module, "in_channels", 3), *getattr(module, "in_size", (224, 224)))]
    return Model(module, tuple(torch.randn(*size) for size in sizes), facts={"heuristic_tag": "computer_vision"})
