"""x-transformers: encoders and decoders with one of the package's many variations each."""

from __future__ import annotations

from typing import Any

import torch

from ..metadata import Range
from ..model import Entry, Model

_SOURCE = "x_transformers"
_TOKENS = 20_000
_LENGTH = 256
_SIZES = {"small": {"dim": 384, "depth": 6, "heads": 6}, "base": {"dim": 768, "depth": 12, "heads": 12}}
_VARIATIONS: dict[str, dict[str, Any]] = {
    "plain": {},
    "alibi": {"alibi_pos_bias": True, "alibi_num_heads": 4},
    "rotary": {"rotary_pos_emb": True},
    "xpos": {"rotary_xpos": True},
    "dynamic_bias": {"dynamic_pos_bias": True, "dynamic_pos_bias_log_distance": False},
    "rms_norm": {"use_rmsnorm": True},
    "simple_rms_norm": {"use_simple_rmsnorm": True},
    "scale_norm": {"use_scalenorm": True},
    "dynamic_tanh": {"use_dynamic_tanh": True},
    "post_norm": {"pre_norm": False},
    "sandwich_norm": {"sandwich_norm": True},
    "glu": {"ff_glu": True},
    "swiglu": {"ff_glu": True, "ff_swish": True, "ff_no_bias": True},
    "relu_squared": {"ff_relu_squared": True},
    "inner_norm": {"ff_post_act_ln": True},
    "memory_keys": {"attn_num_mem_kv": 16},
    "talking_heads": {"attn_pre_talking_heads": True, "attn_post_talking_heads": True},
    "one_key_head": {"attn_one_kv_head": True},
    "grouped_keys": {"attn_kv_heads": 2},
    "top_k": {"attn_sparse_topk": 8},
    "cosine_attention": {"attn_qk_norm": True, "attn_qk_norm_scale": 10},
    "normed_queries": {"attn_qk_norm": True, "attn_qk_norm_dim_scale": True},
    "attention_on_attention": {"attn_on_attn": True},
    "gated_values": {"attn_gate_values": True},
    "gated_heads": {"attn_head_scale": True},
    "residual_attention": {"residual_attn": True},
    "gated_residual": {"gate_residual": True},
    "scaled_residual": {"scale_residual": True},
    "macaron": {"macaron": True},
    "sandwich_order": {"sandwich_coef": 2},
    "shifted_tokens": {"shift_tokens": 1},
    "clamped_logits": {"attn_softclamp_logits": True},
    "laser": {"attn_laser": True},
    "hyper_connections": {"num_residual_streams": 4},
    "llama": {"use_rmsnorm": True, "ff_glu": True, "ff_swish": True, "ff_no_bias": True, "rotary_pos_emb": True},
    "palm": {"attn_one_kv_head": True, "ff_glu": True, "ff_swish": True, "rotary_xpos": True},
}


def entries() -> list[Entry]:
    return [
        Entry(_SOURCE, f"{layers.lower()}_{name}_{size}", _SOURCE, {"layers": layers, "size": widths, "variation": settings})
        for layers in ("Encoder", "Decoder")
        for name, settings in _VARIATIONS.items()
        for size, widths in _SIZES.items()
        # Vanishing tokens and positions from a distance want an order.
        if layers == "Decoder" or name not in ("xpos", "palm")
    ]


def build(entry: Entry) -> Model:
    import x_transformers

    options = entry.options
    layers = getattr(x_transformers, options["layers"])(**options["size"], **options["variation"])
    module = x_transformers.TransformerWrapper(num_tokens=_TOKENS, max_seq_len=_LENGTH, attn_layers=layers)
    tokens = torch.randint(0, _TOKENS, (1, _LENGTH))
    return Model(module, (tokens,), ranges=[(tokens, Range(0, _TOKENS - 1))], facts={"heuristic_tag": "nlp"})
