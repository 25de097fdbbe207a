"""Low-rank adapters: y = W x + (alpha / r) B A x with W frozen, A random and B zero at first.

Saved in the form of PEFT, so that every tool that loads adapters loads these.
"""

from __future__ import annotations

import json
import math
import os
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file

from passnet.learn.job import JobError

TARGETS = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")
WEIGHTS = "adapter_model.safetensors"
CONFIG = "adapter_config.json"
_PREFIX = "base_model.model."


class LowRank(torch.nn.Module):
    """A frozen linear layer with an adapter beside it, whose numbers are float32."""

    def __init__(self, base: torch.nn.Linear, rank: int, alpha: float, generator: torch.Generator) -> None:
        super().__init__()
        self.base = base
        self.scale = alpha / rank
        bound = 1 / math.sqrt(base.in_features)
        first = torch.empty(rank, base.in_features).uniform_(-bound, bound, generator=generator)
        self.lora_A = torch.nn.Parameter(first.to(base.weight.device))
        self.lora_B = torch.nn.Parameter(torch.zeros(base.out_features, rank, device=base.weight.device))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        low = torch.nn.functional.linear(x, self.lora_A.to(x.dtype))
        return self.base(x) + self.scale * torch.nn.functional.linear(low, self.lora_B.to(x.dtype))


def add(model: torch.nn.Module, rank: int, alpha: float, seed: int) -> dict[str, LowRank]:
    """Puts adapters beside the projections of every layer; gives them by name."""
    generator = torch.Generator().manual_seed(seed)
    found: dict[str, LowRank] = {}
    for name, module in list(model.named_modules()):
        if isinstance(module, torch.nn.Linear) and name.rsplit(".", 1)[-1] in TARGETS:
            parent, _, leaf = name.rpartition(".")
            layer = LowRank(module, rank, alpha, generator)
            setattr(model.get_submodule(parent), leaf, layer)
            found[name] = layer
    if not found:
        raise JobError(f"the model has none of the layers {', '.join(TARGETS)}")
    return found


def load(model: torch.nn.Module, folder: str, seed: int = 0) -> dict[str, LowRank]:
    """Adapters as they were saved."""
    place = Path(folder)
    try:
        config = json.loads((place / CONFIG).read_text(encoding="utf-8"))
        tensors = load_file(place / WEIGHTS)
        layers = add(model, int(config["r"]), float(config["lora_alpha"]), seed)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise JobError(f"{folder}: no adapter: {error}") from error
    put(layers, {name.removeprefix(_PREFIX): tensor for name, tensor in tensors.items()})
    return layers


def put(layers: dict[str, LowRank], tensors: dict[str, torch.Tensor]) -> None:
    with torch.no_grad():
        for name, layer in layers.items():
            for part in ("lora_A", "lora_B"):
                tensor = tensors.get(f"{name}.{part}.weight")
                parameter = getattr(layer, part)
                if tensor is None or tensor.shape != parameter.shape:
                    raise JobError(f"the adapter has no fitting {name}.{part}")
                parameter.copy_(tensor)


def state(layers: dict[str, LowRank]) -> dict[str, torch.Tensor]:
    return {
        f"{name}.{part}.weight": getattr(layer, part).detach().cpu().contiguous()
        for name, layer in layers.items()
        for part in ("lora_A", "lora_B")
    }


def save(layers: dict[str, LowRank], folder: str, base: str, rank: int, alpha: float) -> None:
    """Weights in bfloat16, half the size: adapters travel."""
    place = Path(folder)
    place.mkdir(parents=True, exist_ok=True)
    config: dict[str, Any] = {
        "peft_type": "LORA",
        "task_type": "CAUSAL_LM",
        "base_model_name_or_path": base,
        "r": rank,
        "lora_alpha": alpha,
        "lora_dropout": 0.0,
        "target_modules": sorted({name.rsplit(".", 1)[-1] for name in layers}),
        "bias": "none",
        "fan_in_fan_out": False,
        "inference_mode": True,
    }
    tensors = {_PREFIX + name: tensor.to(torch.bfloat16) for name, tensor in state(layers).items()}
    partial = place / (WEIGHTS + ".partial")
    save_file(tensors, partial, metadata={"format": "pt"})
    (place / CONFIG).write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")
    os.replace(partial, place / WEIGHTS)


def merge(layers: dict[str, LowRank], model: torch.nn.Module) -> None:
    """Adds the adapters into the weights: what only replies is faster so."""
    with torch.no_grad():
        for name, layer in layers.items():
            weight = layer.base.weight
            weight.add_((layer.scale * (layer.lora_B @ layer.lora_A)).to(weight.dtype))
            parent, _, leaf = name.rpartition(".")
            setattr(model.get_submodule(parent), leaf, layer.base)
