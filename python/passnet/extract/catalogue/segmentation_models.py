"""segmentation_models_pytorch: every architecture with every encoder, and with the encoders of timm that are used most.

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
# Architectures of timm that the package has no encoder of its own for, a few sizes of each.
_FROM_TIMM = [
    "tu-resnet18d", "tu-resnet26d", "tu-resnet50d", "tu-resnetv2_50", "tu-resnetaa50", "tu-resnetrs50", "tu-seresnet50",
    "tu-seresnext50_32x4d", "tu-ecaresnet26t", "tu-ecaresnet50d", "tu-skresnet18", "tu-skresnet50", "tu-res2net50_26w_4s",
    "tu-res2next50", "tu-resnest26d", "tu-resnest50d", "tu-gcresnet50t", "tu-lambda_resnet26t", "tu-halonet26t", "tu-botnet26t_256",
    "tu-convnext_atto", "tu-convnext_nano", "tu-convnext_tiny", "tu-convnext_small", "tu-convnext_base", "tu-convnextv2_atto",
    "tu-convnextv2_nano", "tu-convnextv2_tiny", "tu-edgenext_xx_small", "tu-edgenext_small", "tu-efficientnet_b0",
    "tu-efficientnet_b1", "tu-efficientnet_b2", "tu-efficientnet_b3", "tu-efficientnet_b4", "tu-efficientnetv2_rw_t",
    "tu-efficientnetv2_s", "tu-tf_efficientnetv2_b0", "tu-tf_efficientnetv2_b3", "tu-mobilenetv2_100", "tu-mobilenetv3_small_100",
    "tu-mobilenetv3_large_100", "tu-mobilenetv4_conv_small", "tu-mobilenetv4_conv_medium", "tu-mobilenetv4_hybrid_medium",
    "tu-mnasnet_100", "tu-semnasnet_100", "tu-fbnetc_100", "tu-spnasnet_100", "tu-mixnet_s", "tu-mixnet_m", "tu-ghostnet_100",
    "tu-ghostnetv2_100", "tu-hardcorenas_a", "tu-lcnet_050", "tu-lcnet_100", "tu-tinynet_a", "tu-tinynet_c", "tu-rexnet_100",
    "tu-rexnet_150", "tu-regnetx_002", "tu-regnetx_008", "tu-regnetx_032", "tu-regnety_002", "tu-regnety_008", "tu-regnety_032",
    "tu-regnetz_c16", "tu-nf_resnet26", "tu-nf_regnet_b0", "tu-nfnet_l0", "tu-eca_nfnet_l0", "tu-dm_nfnet_f0", "tu-hrnet_w18",
    "tu-hrnet_w18_small_v2", "tu-hrnet_w32", "tu-dla34", "tu-dla60", "tu-dla102", "tu-densenet121", "tu-densenet161",
    "tu-cspresnet50", "tu-cspdarknet53", "tu-cs3darknet_m", "tu-darknet53", "tu-vovnet39a", "tu-ese_vovnet19b_dw",
    "tu-ese_vovnet39b", "tu-selecsls42b", "tu-xception41", "tu-xception65", "tu-inception_v4", "tu-inception_next_tiny",
    "tu-repvgg_a2", "tu-repvgg_b0", "tu-repghostnet_100", "tu-hgnet_tiny", "tu-hgnetv2_b0", "tu-hgnetv2_b4", "tu-maxvit_rmlp_pico_rw_256",
    "tu-maxvit_rmlp_nano_rw_256", "tu-coatnet_nano_rw_224", "tu-coatnet_0_rw_224", "tu-mvitv2_tiny", "tu-pvt_v2_b0", "tu-pvt_v2_b2",
    "tu-poolformer_s12", "tu-poolformerv2_s12", "tu-caformer_s18", "tu-convformer_s18", "tu-efficientformer_l1",
    "tu-efficientvit_b0", "tu-efficientvit_m2", "tu-fastvit_t8", "tu-fastvit_sa12", "tu-repvit_m1", "tu-starnet_s1",
    "tu-swin_tiny_patch4_window7_224", "tu-swinv2_tiny_window8_256", "tu-tiny_vit_5m_224", "tu-twins_svt_small",
    "tu-nextvit_small", "tu-focalnet_tiny_srf", "tu-davit_tiny", "tu-mambaout_tiny", "tu-rdnet_tiny", "tu-shvit_s1",
]  # fmt: skip


def entries() -> list[Entry]:
    import segmentation_models_pytorch as package

    found = []
    encoders = [*package.encoders.get_encoder_names(), *_FROM_TIMM]
    for architecture in package.MODEL_ARCHITECTURES_MAPPING:
        for encoder in _VISION_TRANSFORMERS if architecture == _TRANSFORMERS else encoders:
            options = {"architecture": architecture, "encoder": encoder}
            found.append(Entry("segmentation_models_pytorch", f"{architecture}_{encoder}", "segmentation_models_pytorch", options))
    return found


def build(entry: Entry) -> Model:
    import segmentation_models_pytorch as package

    architecture = entry.options["architecture"]
    # Some encoders of timm take images of the size in their name alone.
    pixels = 224 if architecture == _TRANSFORMERS or entry.options["encoder"].endswith("_224") else _PIXELS
    module = package.create_model(
        architecture, encoder_name=entry.options["encoder"], encoder_weights=None, in_channels=3, classes=_CLASSES
    )
    return Model(module, (torch.randn(1, 3, pixels, pixels),), facts={"heuristic_tag": "computer_vision"})
