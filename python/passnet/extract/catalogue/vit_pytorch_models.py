"""vit-pytorch: its classifiers of images, volumes and sequences, in three sizes where sizes are free."""

from __future__ import annotations

from typing import Any

from ..model import Entry, Model
from . import by_class

_SOURCE = "vit_pytorch"
_PIXELS = 224
_CLASSES = 1_000
_SIZES = {
    "tiny": {"dim": 192, "depth": 6, "heads": 3, "mlp_dim": 768},
    "small": {"dim": 384, "depth": 12, "heads": 6, "mlp_dim": 1_536},
    "base": {"dim": 768, "depth": 12, "heads": 12, "mlp_dim": 3_072},
}
# Modules whose class takes image, patch, classes and the sizes above, with what else it wants.
_PLAIN: dict[str, tuple[str, dict[str, Any]]] = {
    "vit": ("ViT", {}),
    "vit_mean": ("ViT", {"pool": "mean"}),
    "simple_vit": ("SimpleViT", {}),
    "simple_flash_attn_vit": ("SimpleViT", {"use_flash": False}),
    "simple_vit_attn_residual": ("SimpleViTAttnResidual", {}),
    "simple_vit_orthog_residual_update": ("SimpleViT", {}),
    "simple_vit_with_fft": ("SimpleViT", {"freq_patch_size": 8}),
    "simple_vit_with_hyper_connections": ("SimpleViT", {"num_residual_streams": 4}),
    "simple_vit_with_qk_norm": ("SimpleViT", {}),
    "simple_vit_with_register_tokens": ("SimpleViT", {}),
    "simple_vit_with_relative_proj_pos_bias": ("SimpleViT", {}),
    "simple_vit_with_sparse_gating": ("SimpleViTWithSparseGating", {}),
    "simple_vit_with_specialized_cls": ("SimpleViT", {}),
    "simple_vit_with_value_residual": ("SimpleViT", {}),
    "simple_uvit": ("SimpleUViT", {}),
    "attn_residual_with_dca_simple_vit": ("SimpleViT", {}),
    "deepvit": ("DeepViT", {}),
    "cait": ("CaiT", {"cls_depth": 2}),
    "xcit": ("XCiT", {"cls_depth": 2}),
    "jet_vit": ("JetViT", {}),
    "learnable_memory_vit": ("ViT", {}),
    "mp3": ("ViT", {}),
    "normalized_vit": ("nViT", {}),
    "parallel_vit": ("ViT", {}),
    "rvt": ("RvT", {}),
    "vat": ("ViT", {}),
    "vit_5": ("ViT", {}),
    "vit_detpool": ("ViTDetPool", {}),
    "vit_for_small_dataset": ("ViT", {}),
    "vit_with_decorr": ("ViT", {}),
    "vit_with_keel_post_ln": ("ViT", {}),
    "vit_with_patch_dropout": ("ViT", {}),
    "vit_with_patch_merger": ("ViT", {"patch_merge_layer": 4}),
}
_STAGES = {"dim": (64, 128, 256, 512), "depth": (2, 2, 8, 2)}
# Those with sizes of their own.
_OWN: dict[str, tuple[str, dict[str, Any]]] = {
    "crossformer": ("CrossFormer", {**_STAGES, "num_classes": _CLASSES}),
    "regionvit": ("RegionViT", {**_STAGES, "num_classes": _CLASSES}),
    "cross_vit": ("CrossViT", {"image_size": _PIXELS, "num_classes": _CLASSES, "sm_dim": 192, "lg_dim": 384, "sm_patch_size": 14}),
    "cvt": ("CvT", {"num_classes": _CLASSES}),
    "levit": ("LeViT", {"image_size": _PIXELS, "num_classes": _CLASSES, "dim": (256, 384, 512), "depth": 4, "heads": (4, 6, 8), "mlp_mult": 2}),
    "max_vit": ("MaxViT", {"num_classes": _CLASSES, "dim": 96, "depth": (2, 2, 5, 2), "dim_conv_stem": 64}),
    "max_vit_with_registers": ("MaxViT", {"num_classes": _CLASSES, "dim": 96, "depth": (2, 2, 5, 2), "dim_conv_stem": 64}),
    "nest": ("NesT", {"image_size": _PIXELS, "patch_size": 4, "dim": 96, "heads": 3, "num_hierarchies": 3, "block_repeats": (2, 2, 8), "num_classes": _CLASSES}),
    "pit": ("PiT", {"image_size": _PIXELS, "patch_size": 14, "dim": 256, "num_classes": _CLASSES, "depth": (3, 3, 3), "heads": 8, "mlp_dim": 512}),
    "scalable_vit": ("ScalableViT", {"num_classes": _CLASSES, "dim": 64, "heads": (2, 4, 8, 16), "depth": (2, 2, 20, 2), "ssa_dim_key": (40, 40, 40, 32), "reduction_factor": (8, 4, 2, 1), "window_size": (64, 32, None, None)}),
    "sep_vit": ("SepViT", {"num_classes": _CLASSES, "dim": 32, "dim_head": 32, "heads": (1, 2, 4, 8), "depth": (1, 2, 6, 2)}),
    "t2t": ("T2TViT", {"image_size": _PIXELS, "num_classes": _CLASSES, "dim": 384, "depth": 8, "heads": 6, "mlp_dim": 1_152}),
    "twins_svt": ("TwinsSVT", {"num_classes": _CLASSES}),
    "look_vit": ("LookViT", {"image_size": 256, "num_classes": _CLASSES, "dim": 384}),
    "looped_vit": ("LoopedViT", {"image_size": _PIXELS, "patch_size": 16, "num_classes": _CLASSES, "dim": 384}),
}  # fmt: skip
_CLIP = {"frames": 16, "frame_patch_size": 2, "image_size": 128, "num_classes": _CLASSES}
_VOLUME = {**_CLIP, "image_patch_size": 16}


def entries() -> list[Entry]:
    found = []
    for size, widths in _SIZES.items():
        common = {"num_classes": _CLASSES, **widths}
        for name, (made, others) in _PLAIN.items():
            settings = {"image_size": _PIXELS, "patch_size": 16, **common, **others}
            found.append(_entry(f"{name}_{size}", f"{name.removesuffix('_mean')}:{made}", settings, [1, 3, _PIXELS, _PIXELS]))
        for name, made in {"vit_3d": "ViT", "simple_vit_3d": "SimpleViT"}.items():
            found.append(_entry(f"{name}_{size}", f"{name}:{made}", {**_VOLUME, **common}, [1, 3, 16, 128, 128]))
        for variant in ("factorized_encoder", "factorized_self_attention"):
            depths = {"spatial_depth": common["depth"] // 2, "temporal_depth": common["depth"] // 2, "variant": variant}
            settings = {**_VOLUME, **{key: value for key, value in common.items() if key != "depth"}, **depths, "use_flash_attn": False}
            found.append(_entry(f"vivit_{variant}_{size}", "vivit:ViViT", settings, [1, 3, 16, 128, 128]))
        for name, made in {"vit_1d": "ViT", "simple_vit_1d": "SimpleViT"}.items():
            found.append(_entry(f"{name}_{size}", f"{name}:{made}", {"seq_len": 256, "patch_size": 16, **common}, [1, 3, 256]))
    for name, (made, settings) in _OWN.items():
        pixels = settings.get("image_size", _PIXELS)
        found.append(_entry(name, f"{name}:{made}", settings, [1, 3, pixels, pixels]))
    return found


def _entry(name: str, made: str, settings: dict[str, Any], size: list[int]) -> Entry:
    plain = {key: list(value) if isinstance(value, tuple) else value for key, value in settings.items()}
    return by_class.entry(_SOURCE, name, f"vit_pytorch.{made}", plain, [size], "computer_vision")


def build(entry: Entry) -> Model:
    # The package tells one number for all stages from a number for each by its being a tuple.
    settings = {key: tuple(value) if isinstance(value, list) else value for key, value in entry.options["settings"].items()}
    return by_class.build(Entry(entry.family, entry.name, entry.source, {**entry.options, "settings": settings}))
