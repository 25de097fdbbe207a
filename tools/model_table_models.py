"""Small models that no package of configurations has: a U-Net, a detection neck, a graph network, a state-space layer."""

import torch
from torch import nn
from torch.nn import functional as F


class Convolutions(nn.Sequential):
    def __init__(self, given: int, made: int) -> None:
        super().__init__(
            nn.Conv2d(given, made, 3, padding=1), nn.GroupNorm(8, made), nn.SiLU(),
            nn.Conv2d(made, made, 3, padding=1), nn.GroupNorm(8, made), nn.SiLU(),
        )  # fmt: skip


class UNet(nn.Module):
    def __init__(self, width: int = 64, levels: int = 4) -> None:
        super().__init__()
        widths = [width << level for level in range(levels)]
        self.first = nn.Conv2d(3, width, 3, padding=1)
        self.down = nn.ModuleList(Convolutions(a, b) for a, b in zip([width, *widths], widths))
        self.up = nn.ModuleList(Convolutions(a + b, b) for a, b in zip(widths[:0:-1], widths[-2::-1]))
        self.last = nn.Conv2d(width, 3, 1)

    def forward(self, x):
        x, kept = self.first(x), []
        for level, block in enumerate(self.down):
            x = block(x if level == 0 else F.avg_pool2d(x, 2))
            kept.append(x)
        for block, other in zip(self.up, kept[-2::-1]):
            x = block(torch.cat([F.interpolate(x, scale_factor=2.0, mode="nearest"), other], dim=1))
        return self.last(x)


class Neck(nn.Module):
    """A feature pyramid with heads, as detectors have them."""

    def __init__(self, widths=(128, 256, 512), width: int = 128) -> None:
        super().__init__()
        self.sides = nn.ModuleList(nn.Conv2d(w, width, 1) for w in widths)
        self.smooth = nn.ModuleList(
            nn.Sequential(nn.Conv2d(width, width, 3, padding=1), nn.BatchNorm2d(width), nn.SiLU()) for _ in widths
        )
        self.boxes, self.classes = nn.Conv2d(width, 4, 1), nn.Conv2d(width, 80, 1)

    def forward(self, *features):
        sides = [side(feature) for side, feature in zip(self.sides, features)]
        for level in range(len(sides) - 1, 0, -1):
            sides[level - 1] = sides[level - 1] + F.interpolate(sides[level], scale_factor=2.0, mode="nearest")
        outputs = []
        for smooth, side in zip(self.smooth, sides):
            x = smooth(side)
            outputs.append(torch.cat([F.softplus(self.boxes(x)), self.classes(x).sigmoid()], dim=1).flatten(2))
        return torch.cat(outputs, dim=2)


class GraphNetwork(nn.Module):
    """Messages along edges, summed at nodes, in a batch of graphs of the same edges."""

    def __init__(self, width: int = 128, layers: int = 4) -> None:
        super().__init__()
        self.messages = nn.ModuleList(nn.Linear(2 * width, width) for _ in range(layers))
        self.updates = nn.ModuleList(nn.Linear(2 * width, width) for _ in range(layers))
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(layers))
        self.register_buffer("source", torch.randint(0, 256, (2048,)))
        self.register_buffer("target", torch.randint(0, 256, (2048,)))

    def forward(self, x):
        for message, update, norm in zip(self.messages, self.updates, self.norms):
            pairs = torch.cat([x[:, self.source], x[:, self.target]], dim=-1)
            sums = torch.zeros_like(x).index_add(1, self.target, F.gelu(message(pairs)))
            x = norm(x + F.gelu(update(torch.cat([x, sums], dim=-1))))
        return x.mean(1)


class StateSpace(nn.Module):
    """A diagonal state-space layer as a long convolution, with its gate."""

    def __init__(self, width: int = 256, states: int = 16, length: int = 512, layers: int = 4) -> None:
        super().__init__()
        self.length = length
        self.decay = nn.ParameterList(nn.Parameter(torch.rand(width, states)) for _ in range(layers))
        self.mixed = nn.ParameterList(nn.Parameter(torch.randn(width, states)) for _ in range(layers))
        self.gates = nn.ModuleList(nn.Linear(width, 2 * width) for _ in range(layers))
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(layers))

    def forward(self, x):
        steps = torch.arange(self.length, device=x.device, dtype=torch.float32)
        for decay, mixed, gate, norm in zip(self.decay, self.mixed, self.gates, self.norms):
            rates = -F.softplus(decay.float())
            kernel = (mixed.float().unsqueeze(-1) * (rates.unsqueeze(-1) * steps).exp()).sum(1)
            y = norm(x)
            size = 2 * self.length
            signal = torch.fft.rfft(y.transpose(1, 2).float(), n=size) * torch.fft.rfft(kernel, n=size)
            long = torch.fft.irfft(signal, n=size)[..., : self.length].transpose(1, 2).to(x.dtype)
            values, gates = gate(long).chunk(2, dim=-1)
            x = x + values * F.silu(gates)
        return x


def unet():
    return UNet(), (torch.randn(1, 3, 128, 128),)


def neck():
    return Neck(), tuple(torch.randn(1, width, size, size) for width, size in ((128, 80), (256, 40), (512, 20)))


def graph_network():
    return GraphNetwork(), (torch.randn(1, 256, 128),)


def state_space():
    return StateSpace(), (torch.randn(1, 512, 256),)
