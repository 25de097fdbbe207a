"""MONAI: networks for medical images, of slices and of volumes."""

from __future__ import annotations

from typing import Any

from ..model import Entry, Model
from . import by_class

_SOURCE = "monai"
_LEVELS = {"channels": [16, 32, 64, 128, 256], "strides": [2, 2, 2, 2]}
_KERNELS = {"kernel_size": [3, 3, 3, 3, 3], "strides": [1, 2, 2, 2, 2], "upsample_kernel_size": [2, 2, 2, 2]}
_LATENT = {"channels": [64, 128, 256], "num_res_blocks": 2, "attention_levels": [False, True, True], "num_head_channels": 64}
# With `spatial_dims`, one channel in and two out, where nothing else is said.
_SEGMENT: dict[str, tuple[str, dict[str, Any]]] = {
    "unet": ("UNet", _LEVELS),
    "unet_residual": ("UNet", {**_LEVELS, "num_res_units": 2}),
    "unet_batch_relu": ("UNet", {**_LEVELS, "num_res_units": 2, "act": "RELU", "norm": "BATCH"}),
    "unet_wide": ("UNet", {"channels": [32, 64, 128, 256, 512], "strides": [2, 2, 2, 2], "num_res_units": 3}),
    "attention_unet": ("AttentionUnet", _LEVELS),
    "autoencoder": ("AutoEncoder", {**_LEVELS, "strides": [2, 2, 2, 2, 2]}),
    "autoencoder_residual": ("AutoEncoder", {**_LEVELS, "strides": [2, 2, 2, 2, 2], "num_res_units": 2}),
    "basic_unet": ("BasicUNet", {}),
    "basic_unet_upsample": ("BasicUNet", {"upsample": "nontrainable"}),
    "basic_unet_plus_plus": ("BasicUNetPlusPlus", {}),
    "dynunet": ("DynUNet", _KERNELS),
    "dynunet_residual": ("DynUNet", {**_KERNELS, "res_block": True}),
    "dynunet_deep": ("DynUNet", {**_KERNELS, "deep_supervision": True, "deep_supr_num": 2}),
    "highresnet": ("HighResNet", {}),
    "segresnet": ("SegResNet", {"init_filters": 16}),
    "segresnet_deconv": ("SegResNet", {"init_filters": 16, "upsample_mode": "deconv"}),
    "segresnet_ds": ("SegResNetDS", {}),
    "segresnet_ds2": ("SegResNetDS2", {}),
    "vnet": ("VNet", {}),
    "mednext": ("MedNeXt", {}),
    "mednext_small_kernel": ("MedNeXt", {"kernel_size": 3, "use_residual_connection": True}),
    "mednext_response": ("MedNeXt", {"global_resp_norm": True}),
    "swin_unetr": ("SwinUNETR", {"feature_size": 24}),
    "swin_unetr_48": ("SwinUNETR", {"feature_size": 48}),
    "swin_unetr_v2": ("SwinUNETR", {"feature_size": 24, "use_v2": True}),
    "vqvae": ("VQVAE", {}),
    "autoencoder_kl": ("AutoencoderKL", {}),
    "autoencoder_kl_plain": ("AutoencoderKL", {"with_encoder_nonlocal_attn": False, "with_decoder_nonlocal_attn": False}),
}
_CLASSIFY = {
    **{f"densenet{depth}": (f"DenseNet{depth}", {}) for depth in (121, 169, 201, 264)},
    **{f"resnet{depth}": (f"resnet{depth}", {"n_input_channels": 1, "num_classes": 2}) for depth in (10, 18, 34, 50, 101, 152, 200)},
    **{name: (made, {"in_channels": 1, "num_classes": 2}) for name, made in {
        "seresnet50": "SEResNet50", "seresnet101": "SEResNet101", "seresnet152": "SEResNet152",
        "seresnext50": "SEResNext50", "seresnext101": "SEResNext101", "senet154": "SENet154",
    }.items()},
    **{f"efficientnet-b{size}": ("EfficientNetBN", {"model_name": f"efficientnet-b{size}", "pretrained": False, "in_channels": 1, "num_classes": 2}) for size in range(8)},
    "patch_discriminator": ("PatchDiscriminator", {"channels": 64, "in_channels": 1}),
}  # fmt: skip
_BACKBONES = [*(f"resnet{depth}" for depth in (10, 18, 34, 50, 101, 152, 200)), *(f"efficientnet-b{size}" for size in range(8))]
# Bare ones take `n_input_channels`, `num_classes` or nothing instead of channels in and out.
_OWN_CHANNELS = {"n_input_channels", "num_classes"}


def entries() -> list[Entry]:
    found = []
    for dimensions, pixels in ((2, 256), (3, 96)):
        size = [1, 1, *[pixels] * dimensions]
        ends = {"in_channels": 1, "out_channels": 2}
        for name, (made, settings) in {**_SEGMENT, **_CLASSIFY}.items():
            out = 1 if name.startswith(("vqvae", "autoencoder", "patch")) else 2
            common = {} if _OWN_CHANNELS & set(settings) else {**ends, "out_channels": out}
            found.append(_entry(f"{name}_{dimensions}d", made, {"spatial_dims": dimensions, **common, **settings}, [size]))
        found += [
            _entry(f"flexible_unet_{backbone}_{dimensions}d", "FlexibleUNet", {"spatial_dims": dimensions, **ends, "backbone": backbone}, [size])
            for backbone in _BACKBONES
        ]
        for width, heads in ((384, 6), (768, 12)):
            patches = {"spatial_dims": dimensions, "in_channels": 1, "img_size": [pixels] * dimensions}
            sizes = {"hidden_size": width, "num_heads": heads, "mlp_dim": 4 * width}
            found.append(_entry(f"vit_{width}_{dimensions}d", "ViT", {**patches, **sizes, "patch_size": [16] * dimensions, "classification": True}, [size]))
            found.append(_entry(f"unetr_{width}_{dimensions}d", "UNETR", {**patches, **sizes, "out_channels": 2}, [size]))
        latent = [1, 3, *[32 if dimensions == 2 else 16] * dimensions]
        settings = {"spatial_dims": dimensions, "in_channels": 3, "out_channels": 3, **_LATENT}
        found.append(_entry(f"diffusion_unet_{dimensions}d", "DiffusionModelUNet", settings, [latent, by_class.numbers(1_000, 1)]))
    return found


def _entry(name: str, made: str, settings: dict[str, Any], inputs: list[Any]) -> Entry:
    return by_class.entry(_SOURCE, name, f"monai.networks.nets:{made}", settings, inputs, "computer_vision")


def build(entry: Entry) -> Model:
    return by_class.build(entry)
