"""Fifteen models with random weights and published configurations, and a small one of each kind for tests.

    passnet model bench tools/model_set.py:vit_base --batch 1,16
    passnet explain-model tools/model_set.py:small_bert_base

Every name of `MODELS` is a factory of this file, and so is `small_` before it. What transformers has comes from there; the
rest is written out in `model_set_parts.py`. Nothing is downloaded.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
from model_set_parts import CoaT, FeaturePyramid, GraphNetwork, Mamba2, MixtureOfExperts, UNet

Answer = tuple[torch.nn.Module, tuple[torch.Tensor, ...]]

TEXT = 128
VOCABULARY = 30_522
WAVE = 16_000


def transformer(model_type: str, **settings: Any) -> torch.nn.Module:
    """The bare model of a configuration of transformers."""
    from transformers import AutoConfig, AutoModel

    return AutoModel.from_config(AutoConfig.for_model(model_type, **settings))


def settled(module: torch.nn.Module, inputs: tuple[torch.Tensor, ...]) -> Answer:
    """As if it had been trained a little: with the usual small weights and no statistics, what an untrained stack of
    convolutions and batch normalisations gives is nearly zero."""
    for part in module.modules():
        if isinstance(part, torch.nn.Conv2d):
            torch.nn.init.kaiming_normal_(part.weight, nonlinearity="linear")
        if isinstance(part, torch.nn.BatchNorm2d):
            part.momentum = 1.0
            part.reset_parameters()
    with torch.no_grad():
        module.train()(*[torch.randn(2, *given.shape[1:]) for given in inputs])
    return module.eval(), inputs


def image(size: int) -> tuple[torch.Tensor, ...]:
    return (torch.randn(1, 3, size, size),)


def tokens(length: int, vocabulary: int) -> torch.Tensor:
    return torch.randint(0, vocabulary, (1, length))


def text(length: int, vocabulary: int) -> tuple[torch.Tensor, ...]:
    return tokens(length, vocabulary), torch.ones(1, length, dtype=torch.long)


def resnet50(small: bool = False) -> Answer:
    if small:
        sizes = {"embedding_size": 16, "hidden_sizes": [32, 64], "depths": [1, 2]}
        return settled(transformer("resnet", **sizes), image(32))
    return settled(transformer("resnet"), image(224))


def efficientnet_b0(small: bool = False) -> Answer:
    # The configuration's defaults are those of b7.
    settings: dict[str, Any] = {"width_coefficient": 1.0, "depth_coefficient": 1.0, "hidden_dim": 1280, "image_size": 224}
    if small:
        settings |= {"width_coefficient": 0.25, "hidden_dim": 320, "image_size": 64}
    return settled(transformer("efficientnet", **settings), image(settings["image_size"]))


def convnext_tiny(small: bool = False) -> Answer:
    if small:
        return transformer("convnext", hidden_sizes=[16, 32], depths=[1, 2], num_stages=2), image(32)
    return transformer("convnext"), image(224)


def vit_base(small: bool = False) -> Answer:
    if small:
        sizes = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64}
        return transformer("vit", image_size=32, patch_size=8, **sizes), image(32)
    return transformer("vit"), image(224)


def coat_lite_small(small: bool = False) -> Answer:
    if small:
        return CoaT(widths=(16, 32), depths=(1, 1), heads=8, ratios=(2, 2), classes=10), image(32)
    return CoaT(widths=(64, 128, 320, 512), depths=(3, 4, 6, 3), heads=8, ratios=(8, 8, 4, 4)), image(224)


def swin_tiny(small: bool = False) -> Answer:
    if small:
        sizes = {"embed_dim": 16, "depths": [2, 2], "num_heads": [2, 4], "window_size": 4}
        return transformer("swin", image_size=32, patch_size=2, **sizes), image(32)
    return transformer("swin"), image(224)


def bert_base(small: bool = False) -> Answer:
    if small:
        sizes = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64}
        return transformer("bert", vocab_size=100, **sizes), text(16, 100)
    return transformer("bert"), text(TEXT, VOCABULARY)


def deberta_v2(small: bool = False) -> Answer:
    """As `deberta-v3-base` is: attention by content and by place, places in buckets."""
    settings: dict[str, Any] = {
        "hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12, "intermediate_size": 3072,
        "relative_attention": True, "position_buckets": 256, "norm_rel_ebd": "layer_norm", "share_att_key": True,
        "pos_att_type": ["p2c", "c2p"], "position_biased_input": False, "type_vocab_size": 0, "vocab_size": 128_100,
    }  # fmt: skip
    if small:
        settings |= {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64}
        settings |= {"position_buckets": 8, "max_position_embeddings": 32, "vocab_size": 100}
    length = 16 if small else TEXT
    return transformer("deberta-v2", **settings), text(length, settings["vocab_size"])


def mobilevit(small: bool = False) -> Answer:
    if small:
        sizes = {"hidden_sizes": [16, 24, 32], "neck_hidden_sizes": [4, 8, 12, 16, 16, 16, 32], "num_attention_heads": 2}
        return settled(transformer("mobilevit", image_size=64, **sizes), image(64))
    return settled(transformer("mobilevit"), image(256))


def mixture_of_experts(small: bool = False) -> Answer:
    if small:
        return MixtureOfExperts(width=32, layers=2, heads=4, groups=2, hidden=48, experts=4, words=100), (tokens(16, 100),)
    return MixtureOfExperts(), (tokens(TEXT, 32_000),)


def state_space(small: bool = False) -> Answer:
    """As `mamba2-130m` is."""
    if small:
        return Mamba2(width=32, layers=2, states=16, head=8, chunk=8, words=100), (tokens(32, 100),)
    return Mamba2(), (tokens(512, 50_288),)


def unet(small: bool = False) -> Answer:
    if small:
        return UNet(width=8, levels=3), image(32)
    return UNet(), image(128)


def detection_neck(small: bool = False) -> Answer:
    """The feature pyramid of a ResNet-50 at 640 pixels, with heads."""
    widths, width, side = ((8, 16, 32), 16, 8) if small else ((512, 1024, 2048), 256, 80)
    features = tuple(torch.randn(1, wide, side >> level, side >> level) for level, wide in enumerate(widths))
    return settled(FeaturePyramid(widths, width), features)


def audio_encoder(small: bool = False) -> Answer:
    """`wav2vec2-base` on a second of sound."""
    if small:
        sizes = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64}
        convolutions = {"conv_dim": [16, 16], "conv_stride": [5, 4], "conv_kernel": [10, 4], "num_conv_pos_embeddings": 8}
        settings = {**sizes, **convolutions, "num_conv_pos_embedding_groups": 4}
        return transformer("wav2vec2", num_feat_extract_layers=2, **settings), (torch.randn(1, 800),)
    return transformer("wav2vec2"), (torch.randn(1, WAVE),)


def graph_network(small: bool = False) -> Answer:
    nodes, edges, width, layers = (16, 40, 16, 2) if small else (2048, 16_384, 128, 6)
    return GraphNetwork(nodes, edges, width, layers), (torch.randn(1, nodes, width),)


MODELS: dict[str, Callable[..., Answer]] = {
    factory.__name__: factory
    for factory in (
        resnet50, efficientnet_b0, convnext_tiny, vit_base, coat_lite_small, swin_tiny, bert_base, deberta_v2, mobilevit,
        mixture_of_experts, state_space, unet, detection_neck, audio_encoder, graph_network,
    )  # fmt: skip
}

for _name, _factory in MODELS.items():
    globals()[f"small_{_name}"] = functools.partial(_factory, small=True)
