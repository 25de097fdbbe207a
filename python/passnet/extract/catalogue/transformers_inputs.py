"""Example inputs of a transformers model: what its `forward` asks for, in the sizes its configuration names."""

from __future__ import annotations

import inspect
from typing import Any

import torch

from ..errors import CaptureError
from ..metadata import Range
from ..model import Model

TEXT = 128
DECODER_TEXT = 32
WAVE = 16_000
AUDIO_FRAMES = 400
CHOICES = 2
_TEXT_FIRST = ("input_ids", "input_features", "input_values", "pixel_values", "pixel_values_videos")


def inputs_of(module: torch.nn.Module, config: Any) -> Model:
    parameters = set(inspect.signature(module.forward).parameters)
    main = getattr(module, "main_input_name", "input_ids")
    made = _Maker(module, config)
    wanted = [main] if main in parameters else [name for name in _TEXT_FIRST if name in parameters][:1]
    if _has_two_towers(config) and "pixel_values" in parameters and "input_ids" in parameters:
        wanted = ["input_ids", "pixel_values"]
    if "decoder_input_ids" in parameters and (getattr(config, "is_encoder_decoder", False) or "labels" in parameters):
        wanted.append("decoder_input_ids")
    if "bbox" in parameters:
        wanted.append("bbox")
    if not wanted:
        raise CaptureError("unknown inputs", f"forward asks for {', '.join(sorted(parameters))[:200]}")
    for name in wanted:
        made.add(name)
    if "input_ids" in wanted and "attention_mask" in parameters:
        made.add("attention_mask")
    return Model(module, (), made.kwargs, made.ranges, {"heuristic_tag": made.tag})


def _has_two_towers(config: Any) -> bool:
    """A text and an image model side by side; where images are put into the text, text alone is given."""
    inner = hasattr(config, "text_config") and hasattr(config, "vision_config")
    return inner and hasattr(config, "projection_dim") or getattr(config, "model_type", "") in ("vilt", "flava", "bridgetower")


class _Maker:
    def __init__(self, module: torch.nn.Module, config: Any) -> None:
        self.module = module
        self.config = config
        self.kwargs: dict[str, Any] = {}
        self.ranges: list[tuple[torch.Tensor, Range]] = []
        self.tag = "nlp"

    def add(self, name: str) -> None:
        make = getattr(self, f"_{name}", None)
        if make is None:
            raise CaptureError("unknown inputs", f"no example for `{name}`")
        self.kwargs[name] = make()

    def _find(self, *names: str, default: Any = None) -> Any:
        """The first of these settings in the configuration or in one inside it."""
        inner = ("text_config", "vision_config", "audio_config", "encoder", "decoder", "backbone_config", "encoder_config")
        for config in (self.config, *(getattr(self.config, part, None) for part in inner)):
            for name in names:
                value = getattr(config, name, None)
                if value is not None:
                    return value
        return default

    def _tokens(self, length: int, vocabulary: int) -> torch.Tensor:
        # The last tokens of a vocabulary often stand for images.
        high = max(vocabulary - 1, 1)
        tokens = torch.randint(min(5, high), max(min(high, 1_000), min(5, high) + 1), (1, length))
        self.ranges.append((tokens, Range(0, high)))
        return tokens

    def _vocabulary(self) -> int:
        found = self._find("vocab_size", "text_vocab_size", "n_words", "n_tokens", "emb_size", default=1_000)
        return found if isinstance(found, int) else 1_000

    def _length(self) -> int:
        longest = self._find("max_position_embeddings", "n_positions", "max_seq_len", "n_ctx", "seq_length", default=TEXT)
        return min(TEXT, longest) if isinstance(longest, int) and longest > 0 else TEXT

    def _input_ids(self) -> torch.Tensor:
        tokens = self._tokens(self._length(), self._vocabulary())
        return self._per_choice(tokens)

    def _per_choice(self, tokens: torch.Tensor) -> torch.Tensor:
        """Heads that choose between answers take a text for each of them."""
        if not type(self.module).__name__.endswith("MultipleChoice"):
            return tokens
        limits = [limits for known, limits in self.ranges if known is tokens]
        choices = tokens.unsqueeze(1).repeat(1, CHOICES, *[1] * (tokens.dim() - 1))
        self.ranges += [(choices, limit) for limit in limits]
        return choices

    def _decoder_input_ids(self) -> torch.Tensor:
        return self._tokens(DECODER_TEXT, self._vocabulary())

    def _attention_mask(self) -> torch.Tensor:
        mask = torch.ones(self.kwargs["input_ids"].shape, dtype=torch.long)
        self.ranges.append((mask, Range(1, 1)))
        return mask

    def _bbox(self) -> torch.Tensor:
        boxes = torch.zeros(*self.kwargs["input_ids"].shape, 4, dtype=torch.long)
        self.ranges.append((boxes, Range(0, 0)))
        return boxes

    def _image_size(self) -> tuple[int, int]:
        # A model may be the image half of a pair: its own configuration counts first.
        size = self._find("image_size", "img_size", "input_size", default=224)
        if isinstance(size, dict):
            return int(size["height"]), int(size["width"])
        if isinstance(size, (list, tuple)):
            return int(size[0]), int(size[-1])
        return int(size), int(size)

    def _pixel_values(self) -> torch.Tensor:
        self.tag = "computer_vision"
        channels = self._find("num_channels", "in_channels", "in_chans", default=3)
        frames = self._find("num_frames", default=None)
        height, width = self._image_size()
        if isinstance(frames, int) and getattr(self.config, "model_type", "") not in ("git", "x_clip"):
            return torch.randn(1, frames, channels, height, width)
        return torch.randn(1, channels, height, width)

    def _pixel_values_videos(self) -> torch.Tensor:
        self.tag = "computer_vision"
        frames = self._find("frames_per_clip", "num_frames", default=16)
        height = self._find("crop_size", "image_size", default=224)
        return torch.randn(1, frames, 3, height, height)

    def _input_values(self) -> torch.Tensor:
        self.tag = "audio"
        if getattr(self.config, "max_length", None) and hasattr(self.config, "num_mel_bins"):
            return torch.randn(1, self.config.max_length, self.config.num_mel_bins)
        if hasattr(self.config, "audio_channels"):
            return torch.randn(1, self.config.audio_channels, WAVE)
        return torch.randn(1, WAVE)

    def _input_features(self) -> torch.Tensor:
        self.tag = "audio"
        bins = self._find("num_mel_bins", "feature_projection_input_dim", "input_feat_per_channel", default=80)
        positions = self._find("max_source_positions", default=None)
        if getattr(self.config, "model_type", "") in ("whisper", "voxtral", "qwen2_audio") and positions:
            return torch.randn(1, bins, 2 * positions)
        return torch.randn(1, AUDIO_FRAMES, bins)

    def _past_values(self) -> torch.Tensor:
        self.tag = "other"
        length = self._find("context_length", default=512)
        channels = self._find("num_input_channels", "input_size", default=1)
        return torch.randn(1, length, channels)
