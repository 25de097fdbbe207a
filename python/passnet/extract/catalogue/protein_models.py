"""fair-esm: ESM-2 in its published sizes, and the transformer of alignments."""

from __future__ import annotations

import argparse

import torch

from ..metadata import Range
from ..model import Entry, Model

_SOURCE = "esm"
_RESIDUES = 128
_ROWS = 8
# Layers, width and heads.
_SIZES = {
    "esm2_t6_8M": (6, 320, 20), "esm2_t12_35M": (12, 480, 20), "esm2_t30_150M": (30, 640, 20),
    "esm2_t33_650M": (33, 1_280, 20), "esm2_t36_3B": (36, 2_560, 40), "esm2_t48_15B": (48, 5_120, 40),
}  # fmt: skip
_ALIGNMENT = "msa_transformer"


def entries() -> list[Entry]:
    return [Entry(_SOURCE, name, _SOURCE) for name in (*_SIZES, _ALIGNMENT)]


def build(entry: Entry) -> Model:
    import esm

    alignment = entry.name == _ALIGNMENT
    alphabet = esm.data.Alphabet.from_architecture(_ALIGNMENT if alignment else "ESM-1b")
    if alignment:
        settings = argparse.Namespace(
            layers=12, embed_dim=768, ffn_embed_dim=3_072, attention_heads=12, dropout=0.1, attention_dropout=0.1,
            activation_dropout=0.1, max_tokens=2**14, max_tokens_per_msa=2**14, max_positions=1_024, embed_positions_msa=True,
            embed_positions_msa_dim=768,
        )  # fmt: skip
        module = esm.model.msa_transformer.MSATransformer(settings, alphabet)
    else:
        layers, width, heads = _SIZES[entry.name]
        module = esm.ESM2(num_layers=layers, embed_dim=width, attention_heads=heads, alphabet=alphabet)
    size = (1, _ROWS, _RESIDUES) if alignment else (1, _RESIDUES)
    # The twenty amino acids.
    residues = torch.randint(4, 24, size)
    return Model(module, (residues,), ranges=[(residues, Range(4, 23))], facts={"heuristic_tag": "other"})
