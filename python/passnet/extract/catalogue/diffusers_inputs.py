"""Example inputs for the classes of diffusers: one image, clip or sound with its prompt, at one step of denoising.

Images have the size of the configuration, at most 64 by 64 latents; clips have few frames. Larger ones give the same
operations, and `passnet dataset vary` makes other sizes.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import torch

from ..errors import CaptureError
from ..metadata import Range
from ..model import Model

_LATENT = 64
_PIXELS = 256
_FRAMES = 4
# Frames of video transformers after compression in time.
_LATENT_FRAMES = 3
# What the encoders of prompts give: CLIP's tokens, and T5's.
_CLIP_TOKENS = 77
_TOKENS = 128
_STEPS = 1_000
_SAMPLES = 16_384

Inputs = dict[str, Any]


def inputs_of(name: str, module: torch.nn.Module) -> Model:
    """A module of a class with inputs that suit its configuration."""
    make = _MAKERS.get(name)
    if make is None:
        raise CaptureError("unknown inputs", f"the catalogue does not know how to call {name}")
    inputs = make(module.config)
    if "return_dict" in inspect.signature(module.forward).parameters:
        inputs["return_dict"] = False
    step = inputs.get("timestep")
    ranges = [(step, Range(0, _STEPS - 1))] if step is not None and not step.is_floating_point() else []
    labels = inputs.get("class_labels")
    if labels is not None:
        ranges.append((labels, Range(0, _STEPS - 1)))
    return Model(module, kwargs=inputs, ranges=ranges, facts={"heuristic_tag": "other"})


def _step() -> torch.Tensor:
    return torch.randint(0, _STEPS, (1,))


def _latents(config: Any, *, channels: int | None = None) -> torch.Tensor:
    side = min(getattr(config, "sample_size", None) or _LATENT, _LATENT)
    return torch.randn(1, channels or config.in_channels, side, side)


def _prompt(width: int, tokens: int = _TOKENS) -> torch.Tensor:
    return torch.randn(1, tokens, width)


def _everywhere(tokens: int = _TOKENS) -> torch.Tensor:
    return torch.ones(1, tokens, dtype=torch.bool)


def _unconditional(config: Any) -> Inputs:
    return {"sample": _latents(config), "timestep": _step()}


def _size_conditions(config: Any) -> Inputs:
    """SDXL's second prompt, and the sizes that it was cut to."""
    pooled = 1_280
    numbers = (config.projection_class_embeddings_input_dim - pooled) // config.addition_time_embed_dim
    return {"text_embeds": torch.randn(1, pooled), "time_ids": torch.rand(1, numbers) * 1_024}


def _conditional(config: Any) -> Inputs:
    prompt = _prompt(config.cross_attention_dim, _CLIP_TOKENS)
    inputs = {**_unconditional(config), "encoder_hidden_states": prompt}
    if config.addition_embed_type == "text_time":
        inputs["added_cond_kwargs"] = _size_conditions(config)
    if config.num_class_embeds is not None:
        inputs["class_labels"] = torch.randint(0, config.num_class_embeds, (1,))
    if getattr(config, "time_cond_proj_dim", None) is not None:
        inputs["timestep_cond"] = torch.randn(1, config.time_cond_proj_dim)
    return inputs


def _controlled(config: Any) -> Inputs:
    pixels = 8 * _LATENT
    return {**_conditional(config), "controlnet_cond": torch.rand(1, config.conditioning_channels, pixels, pixels)}


def _clip(config: Any, frames: int = _FRAMES) -> torch.Tensor:
    return torch.randn(1, config.in_channels, frames, _LATENT // 2, _LATENT // 2)


def _video(config: Any) -> Inputs:
    return {"sample": _clip(config), "timestep": _step(), "encoder_hidden_states": _prompt(config.cross_attention_dim, _CLIP_TOKENS)}


def _motion(config: Any) -> Inputs:
    # The prompt once for each frame.
    return {**_video(config), "encoder_hidden_states": torch.randn(_FRAMES, _CLIP_TOKENS, config.cross_attention_dim)}


def _image_to_video(config: Any) -> Inputs:
    return {
        "sample": torch.randn(1, _FRAMES, config.in_channels, _LATENT // 2, _LATENT // 2),
        "timestep": _step(),
        "encoder_hidden_states": _prompt(config.cross_attention_dim, 1),
        "added_time_ids": torch.rand(1, config.projection_class_embeddings_input_dim // config.addition_time_embed_dim),
    }


def _kandinsky(config: Any) -> Inputs:
    mask = torch.ones(1, _TOKENS)
    return {**_unconditional(config), "encoder_hidden_states": _prompt(config.encoder_hid_dim), "encoder_attention_mask": mask}


def _prior(config: Any) -> Inputs:
    return {
        "hidden_states": torch.randn(1, config.embedding_dim),
        "timestep": _step(),
        "proj_embedding": torch.randn(1, config.embedding_dim),
        "encoder_hidden_states": _prompt(config.embedding_dim, config.num_embeddings),
        "attention_mask": _everywhere(config.num_embeddings),
    }


def _adapter(config: Any) -> Inputs:
    return {"x": torch.rand(1, config.in_channels, 8 * _LATENT, 8 * _LATENT)}


def _image(config: Any) -> Inputs:
    return {"sample": torch.randn(1, config.in_channels, _PIXELS, _PIXELS)}


def _frames(config: Any) -> Inputs:
    return {"sample": torch.randn(_FRAMES, config.in_channels, _PIXELS // 2, _PIXELS // 2), "num_frames": _FRAMES}


def _sound(config: Any) -> Inputs:
    return {"sample": torch.randn(1, config.audio_channels, _SAMPLES)}


def _labelled(config: Any) -> Inputs:
    label = torch.randint(0, config.num_embeds_ada_norm, (1,))
    return {"hidden_states": _latents(config), "timestep": _step(), "class_labels": label}


def _captioned(width: str) -> Callable[[Any], Inputs]:
    """Latents, a step, and a prompt whose width the configuration has under this name."""

    def make(config: Any) -> Inputs:
        return {"hidden_states": _latents(config), "timestep": _step(), "encoder_hidden_states": _prompt(getattr(config, width))}

    return make


def _pixart(config: Any) -> Inputs:
    conditions: Inputs = {"resolution": None, "aspect_ratio": None}
    if config.use_additional_conditions or (config.use_additional_conditions is None and config.sample_size == 128):
        conditions = {"resolution": torch.tensor([[1024.0, 1024.0]]), "aspect_ratio": torch.tensor([[1.0]])}
    mask = torch.ones(1, _TOKENS)
    return {**_captioned("caption_channels")(config), "encoder_attention_mask": mask, "added_cond_kwargs": conditions}


def _stable_diffusion_3(config: Any) -> Inputs:
    return {**_captioned("joint_attention_dim")(config), "pooled_projections": torch.randn(1, config.pooled_projection_dim)}


def _places(rows: int, columns: int) -> torch.Tensor:
    """Where the patches of an image stand, as rotary embeddings are told."""
    down, across = torch.meshgrid(torch.arange(rows), torch.arange(columns), indexing="ij")
    return torch.stack([torch.zeros_like(down), down, across], dim=-1).reshape(-1, 3).float()


def _flux(config: Any) -> Inputs:
    side = _LATENT // 2
    inputs = {
        "hidden_states": torch.randn(1, side * side, config.in_channels),
        "timestep": torch.rand(1),
        "encoder_hidden_states": _prompt(config.joint_attention_dim),
        "img_ids": _places(side, side),
        "txt_ids": torch.zeros(_TOKENS, 3),
    }
    if getattr(config, "pooled_projection_dim", None) is not None:
        inputs["pooled_projections"] = torch.randn(1, config.pooled_projection_dim)
    if getattr(config, "guidance_embeds", False):
        inputs["guidance"] = torch.full((1,), 3.5)
    return inputs


def _chroma(config: Any) -> Inputs:
    tokens = _TOKENS + (_LATENT // 2) ** 2
    return {**_flux(config), "attention_mask": torch.ones(1, tokens)}


def _lumina(config: Any) -> Inputs:
    return {**_captioned("cap_feat_dim")(config), "timestep": torch.rand(1), "encoder_attention_mask": _everywhere()}


def _cogvideo(config: Any) -> Inputs:
    rows, columns, patch = config.sample_height, config.sample_width, config.patch_size
    frames = (config.sample_frames - 1) // config.temporal_compression_ratio + 1
    rotary = config.use_rotary_positional_embeddings
    if rotary:
        # Learned or fixed positions are tied to the published size; these are not.
        rows, columns, frames = _LATENT // 2, _LATENT // 2, _LATENT_FRAMES
    inputs = {
        "hidden_states": torch.randn(1, frames, config.in_channels, rows, columns),
        "timestep": _step(),
        "encoder_hidden_states": _prompt(config.text_embed_dim, config.max_text_seq_length),
    }
    if rotary:
        angles = torch.rand(frames * (rows // patch) * (columns // patch), config.attention_head_dim)
        inputs["image_rotary_emb"] = (torch.cos(angles), torch.sin(angles))
    return inputs


def _masked_video(width: str) -> Callable[[Any], Inputs]:
    def make(config: Any) -> Inputs:
        return {
            "hidden_states": _clip(config, _LATENT_FRAMES),
            "timestep": _step(),
            "encoder_hidden_states": _prompt(getattr(config, width)),
            "encoder_attention_mask": _everywhere(),
        }

    return make


def _hunyuan_video(config: Any) -> Inputs:
    inputs = {**_masked_video("text_embed_dim")(config), "pooled_projections": torch.randn(1, config.pooled_projection_dim)}
    if config.guidance_embeds:
        inputs["guidance"] = torch.full((1,), 6_000.0)
    return inputs


def _lightricks(config: Any) -> Inputs:
    rows, columns = _LATENT // 8, _LATENT // 8
    return {
        "hidden_states": torch.randn(1, _LATENT_FRAMES * rows * columns, config.in_channels),
        "timestep": _step(),
        "encoder_hidden_states": _prompt(config.caption_channels),
        "encoder_attention_mask": torch.ones(1, _TOKENS),
        "num_frames": _LATENT_FRAMES,
        "height": rows,
        "width": columns,
    }


def _wan(config: Any) -> Inputs:
    return {"hidden_states": _clip(config, _LATENT_FRAMES), "timestep": _step(), "encoder_hidden_states": _prompt(config.text_dim)}


def _audio_transformer(config: Any) -> Inputs:
    # One token for the conditions stands before the sound.
    angles = torch.rand(config.sample_size + 1, config.attention_head_dim // 2)
    return {
        "hidden_states": torch.randn(1, config.in_channels, config.sample_size),
        "timestep": torch.rand(1),
        "encoder_hidden_states": _prompt(config.cross_attention_input_dim),
        "global_hidden_states": torch.randn(1, 1, config.global_states_input_dim),
        "rotary_embedding": (torch.cos(angles), torch.sin(angles)),
    }


def _cogview(config: Any) -> Inputs:
    size = torch.tensor([[1024.0, 1024.0]])
    return {
        **_captioned("text_embed_dim")(config),
        "original_size": size,
        "target_size": size.clone(),
        "crop_coords": torch.zeros(1, 2),
    }


def _qwen(config: Any) -> Inputs:
    side = _LATENT // 2
    return {
        "hidden_states": torch.randn(1, side * side, config.in_channels),
        "timestep": torch.rand(1),
        "encoder_hidden_states": _prompt(config.joint_attention_dim),
        "encoder_hidden_states_mask": _everywhere(),
        "img_shapes": [(1, side, side)],
    }


_MAKERS: dict[str, Callable[[Any], Inputs]] = {
    "UNet2DModel": _unconditional,
    "UNet2DConditionModel": _conditional,
    "UNet3DConditionModel": _video,
    "UNetMotionModel": _motion,
    "UNetSpatioTemporalConditionModel": _image_to_video,
    "Kandinsky3UNet": _kandinsky,
    "PriorTransformer": _prior,
    "ControlNetModel": _controlled,
    "T2IAdapter": _adapter,
    "AutoencoderKL": _image,
    "AutoencoderTiny": _image,
    "VQModel": _image,
    "AsymmetricAutoencoderKL": _image,
    "AutoencoderDC": _image,
    "AutoencoderKLTemporalDecoder": _frames,
    "AutoencoderOobleck": _sound,
    "DiTTransformer2DModel": _labelled,
    "PixArtTransformer2DModel": _pixart,
    "SD3Transformer2DModel": _stable_diffusion_3,
    "FluxTransformer2DModel": _flux,
    "AuraFlowTransformer2DModel": _captioned("joint_attention_dim"),
    "Lumina2Transformer2DModel": _lumina,
    "SanaTransformer2DModel": _captioned("caption_channels"),
    "CogVideoXTransformer3DModel": _cogvideo,
    "MochiTransformer3DModel": _masked_video("text_embed_dim"),
    "LTXVideoTransformer3DModel": _lightricks,
    "WanTransformer3DModel": _wan,
    "StableAudioDiTModel": _audio_transformer,
    "CogView3PlusTransformer2DModel": _cogview,
    "CogView4Transformer2DModel": _cogview,
    "ChromaTransformer2DModel": _chroma,
    "QwenImageTransformer2DModel": _qwen,
    "HunyuanVideoTransformer3DModel": _hunyuan_video,
}
