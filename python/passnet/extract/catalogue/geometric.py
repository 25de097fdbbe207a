"""torch_geometric: its ready-made graph networks, with the layer sizes of their papers."""

from __future__ import annotations

import torch

from ..metadata import Range
from ..model import Entry, Model

_NODES = 256
_EDGES = 1_024
_FEATURES = 128
_BASIC = ["GCN", "GraphSAGE", "GIN", "GAT", "PNA", "EdgeCNN"]
_SIZES = {"small": (64, 2), "base": (256, 3), "deep": (256, 8)}
_OTHERS = ["MLP", "LightGCN", "JumpingKnowledge", "DeepGraphInfomax", "ARMA", "SGC", "APPNP", "TAG", "Cheb"]


def entries() -> list[Entry]:
    sized = [
        Entry("torchgeometric", f"{name}_{size}", "torch_geometric", {"model": name, "size": size})
        for name in _BASIC
        for size in _SIZES
    ]
    others = [Entry("torchgeometric", name, "torch_geometric", {"model": name, "size": "base"}) for name in _OTHERS]
    return sized + others


def build(entry: Entry) -> Model:
    from torch_geometric import nn

    name = entry.options["model"]
    hidden, layers = _SIZES[entry.options["size"]]
    edges = torch.randint(0, _NODES, (2, _EDGES))
    nodes = torch.randn(_NODES, _FEATURES)
    legal = [(edges, Range(0, _NODES - 1))]
    facts = {"heuristic_tag": "other"}
    if name in _BASIC:
        options = {}
        if name == "PNA":
            options = {"aggregators": ["mean", "max"], "scalers": ["identity"], "deg": torch.ones(8, dtype=torch.long)}
        return Model(getattr(nn, name)(_FEATURES, hidden, layers, 16, **options), (nodes, edges), ranges=legal, facts=facts)
    if name == "MLP":
        return Model(nn.MLP([_FEATURES, hidden, hidden, 16]), (nodes,), facts=facts)
    if name == "LightGCN":
        return Model(nn.LightGCN(_NODES, hidden, layers), (edges,), ranges=legal, facts=facts)
    if name == "JumpingKnowledge":
        return Model(nn.JumpingKnowledge("lstm", _FEATURES, layers), ([nodes] * layers,), facts=facts)
    if name == "DeepGraphInfomax":
        module = nn.DeepGraphInfomax(hidden, nn.GCN(_FEATURES, hidden, 2), _mean_summary, _shuffled)
        return Model(module, (nodes, edges), ranges=legal, facts=facts)
    layer = {
        "ARMA": lambda: nn.ARMAConv(_FEATURES, hidden, num_stacks=2, num_layers=2),
        "SGC": lambda: nn.SGConv(_FEATURES, hidden, K=2),
        "APPNP": lambda: nn.APPNP(K=10, alpha=0.1),
        "TAG": lambda: nn.TAGConv(_FEATURES, hidden),
        "Cheb": lambda: nn.ChebConv(_FEATURES, hidden, K=3),
    }[name]()
    return Model(layer, (nodes, edges), ranges=legal, facts=facts)


def _mean_summary(encoded: torch.Tensor, *_: torch.Tensor) -> torch.Tensor:
    return torch.sigmoid(encoded.mean(dim=0))


def _shuffled(nodes: torch.Tensor, edges: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    return nodes.flip(0), edges
