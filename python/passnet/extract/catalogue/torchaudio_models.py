"""torchaudio: speech recognition, synthesis and separation."""

from __future__ import annotations

import torch

from ..metadata import Range
from ..model import Entry, Model

_WAVE = 16_000
_FRAMES = 200
_WAVE_MODELS = [
    "wav2vec2_base", "wav2vec2_large", "wav2vec2_large_lv60k", "hubert_base", "hubert_large", "hubert_xlarge",
    "wavlm_base", "wavlm_large", "wav2vec2_xlsr_300m", "wav2vec2_xlsr_1b",
]  # fmt: skip
_OTHERS = ["conv_tasnet_base", "hdemucs_low", "hdemucs_medium", "deepspeech", "wav2letter", "conformer", "emformer", "wavernn"]


def entries() -> list[Entry]:
    return [Entry("torchaudio", name, "torchaudio") for name in [*_WAVE_MODELS, *_OTHERS]]


def build(entry: Entry) -> Model:
    from torchaudio import models

    facts = {"heuristic_tag": "audio"}
    lengths = torch.tensor([_FRAMES])
    name = entry.name
    if name in _WAVE_MODELS:
        return Model(getattr(models, name)(), (torch.randn(1, _WAVE),), facts=facts)
    if name == "conv_tasnet_base":
        return Model(models.conv_tasnet_base(num_sources=2), (torch.randn(1, 1, _WAVE),), facts=facts)
    if name.startswith("hdemucs"):
        module = getattr(models, name)(sources=["drums", "bass", "other", "vocals"])
        return Model(module, (torch.randn(1, 2, 44_100),), facts=facts)
    if name == "deepspeech":
        return Model(models.DeepSpeech(n_feature=80), (torch.randn(1, 1, _FRAMES, 80),), facts=facts)
    if name == "wav2letter":
        return Model(models.Wav2Letter(num_classes=40), (torch.randn(1, 1, _WAVE),), facts=facts)
    if name == "conformer":
        module = models.Conformer(80, 4, 128, 4, 31)
        return Model(module, (torch.randn(1, _FRAMES, 80), lengths), ranges=[(lengths, Range(1, _FRAMES))], facts=facts)
    if name == "emformer":
        module = models.Emformer(512, 8, 2048, 20, segment_length=4, right_context_length=1)
        return Model(module, (torch.randn(1, 129, 512), torch.tensor([128])), facts=facts)
    module = models.WaveRNN(upsample_scales=[5, 5, 8], n_classes=512, hop_length=200)
    return Model(module, (torch.randn(1, 1, (20 - 4) * 200), torch.randn(1, 1, 128, 20)), facts=facts)
