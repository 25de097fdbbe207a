"""transformers as it is served: one step of decoding with a cache of keys and values, encoders alone, adapted and quantised layers.

The other source captures a whole text at once (prefill). Classes and sizes are the ones listed there.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from ..errors import CaptureError
from ..metadata import Range
from ..model import Entry, Model
from . import transformers_models
from .transformers_inputs import inputs_of

_SOURCE = "transformers_forms"
# The cache has room for so many tokens, half of which are there already.
CACHE = 128
_LORA_RANK = 8
_CAUSAL = ("ForCausalLM", "LMHeadModel")
_ADAPTED = (*_CAUSAL, "ForSequenceClassification")
_QUANTISED = (*_ADAPTED, "ForImageClassification", "ForMaskedLM")
_TWO_PARTS = ("ForConditionalGeneration", "ForSpeechSeq2Seq")


def entries() -> list[Entry]:
    found = []
    for whole in transformers_models.entries():
        name = whole.options["class"]
        forms = []
        if name.endswith(_CAUSAL):
            forms.append("decode")
        if name.endswith(_TWO_PARTS) and _has_encoder(whole.options["module"]):
            forms.append("encoder")
        # Sizes change numbers alone here: the default one stands for its family.
        if "changes" not in whole.options:
            forms += ["lora"] * name.endswith(_ADAPTED) + ["int8"] * name.endswith(_QUANTISED)
        found += [Entry(whole.family, f"{whole.name}.{form}", _SOURCE, {**whole.options, "form": form}) for form in forms]
    return found


@functools.cache
def _has_encoder(module: str) -> bool:
    """Whether models of this file read one text and write another; importing all files to ask them takes minutes."""
    package = importlib.util.find_spec("transformers")
    assert package is not None and package.origin is not None  # its models were listed
    return "decoder_input_ids" in Path(package.origin).parent.joinpath(*module.split(".")[1:]).with_suffix(".py").read_text()


def build(entry: Entry) -> Model:
    module = importlib.import_module(entry.options["module"])
    made = getattr(module, entry.options["class"])
    config = transformers_models.configuration(made, entry.options.get("changes", {}))
    form = entry.options["form"]
    if form not in _FORMS:
        raise CaptureError("bad request", f"`{form}` is none of {', '.join(_FORMS)}")
    return _FORMS[form](made, config)


def _decode(made: Any, config: Any) -> Model:
    """The next token, after as many as half of a static cache holds."""
    from transformers import StaticCache

    module = transformers_models.prepared(made, config).module
    text = config.get_text_config(decoder=True)
    heads = getattr(text, "num_key_value_heads", None) or text.num_attention_heads
    width = getattr(text, "head_dim", None) or text.hidden_size // text.num_attention_heads
    cache = StaticCache(config=config, max_cache_len=CACHE)
    cache.early_initialization(1, heads, width, torch.float32, torch.device("cpu"))
    ranges = []
    for layer in cache.layers:
        length = getattr(layer, "cumulative_length", None)
        if isinstance(length, torch.Tensor):
            length.fill_(CACHE // 2)
            ranges.append((length, Range(0, CACHE - 1)))
    token = torch.randint(5, min(text.vocab_size, 1_000), (1, 1))
    ranges.append((token, Range(0, text.vocab_size - 1)))
    inputs = {"input_ids": token, "past_key_values": cache, "use_cache": True}
    return Model(module, (), inputs, ranges, {"heuristic_tag": "nlp"})


def _encoder(made: Any, config: Any) -> Model:
    whole = transformers_models.prepared(made, config)
    encoder = whole.module.get_encoder()
    if encoder is None or encoder is whole.module:
        raise CaptureError("unknown inputs", f"{made.__name__} has no encoder of its own")
    return inputs_of(encoder, config)


def _lora(made: Any, config: Any) -> Model:
    from peft import LoraConfig, get_peft_model

    whole = transformers_models.prepared(made, config)
    settings = LoraConfig(r=_LORA_RANK, lora_alpha=2 * _LORA_RANK, target_modules="all-linear")
    adapted = get_peft_model(whole.module, settings)
    # Adapters begin as zero; a trained one is not.
    for name, parameter in adapted.named_parameters():
        if "lora_B" in name:
            nn.init.normal_(parameter, std=0.02)
    return Model(adapted.base_model, whole.args, whole.kwargs, whole.ranges, whole.facts)


class Int8Linear(nn.Module):
    """A linear layer whose weights are eight-bit integers with a scale for each output, widened where they are used."""

    def __init__(self, layer: nn.Linear) -> None:
        super().__init__()
        size = (layer.out_features, layer.in_features)
        self.register_buffer("weight", torch.randint(-127, 128, size, dtype=torch.int8))
        # The spread that a fresh layer of this size has.
        self.register_buffer("scale", torch.full((layer.out_features,), layer.in_features**-0.5 / 73.0))
        self.bias = layer.bias

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        found = functional.linear(x, self.weight.to(x.dtype)) * self.scale
        return found if self.bias is None else found + self.bias


def _int8(made: Any, config: Any) -> Model:
    whole = transformers_models.prepared(made, config)
    head = whole.module.get_output_embeddings() if hasattr(whole.module, "get_output_embeddings") else None
    if not _replace_linear(whole.module, head):
        raise CaptureError("no module", f"{made.__name__} has no linear layer to quantise")
    return whole


def _replace_linear(module: nn.Module, kept: nn.Module | None) -> int:
    """How many linear layers were replaced; `kept` shares its weights with an embedding and stays."""
    count = 0
    for name, child in module.named_children():
        if type(child) is nn.Linear and child is not kept:
            setattr(module, name, Int8Linear(child))
            count += 1
        else:
            count += _replace_linear(child, kept)
    return count


_FORMS: dict[str, Callable[[Any, Any], Model]] = {"decode": _decode, "encoder": _encoder, "lora": _lora, "int8": _int8}
