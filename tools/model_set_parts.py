"""Models that transformers has no class for, or none without loops over data: written out in plain PyTorch."""

from __future__ import annotations

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


class FeaturePyramid(nn.Module):
    """The levels of a backbone, coarse added to fine, two coarser ones made, and heads on each."""

    def __init__(self, widths: tuple[int, ...], width: int, classes: int = 80) -> None:
        super().__init__()
        self.sides = nn.ModuleList(nn.Conv2d(wide, width, 1) for wide in widths)
        self.smooth = nn.ModuleList(nn.Conv2d(width, width, 3, padding=1) for _ in widths)
        self.coarser = nn.ModuleList(nn.Conv2d(wide, width, 3, stride=2, padding=1) for wide in (widths[-1], width))
        self.head = nn.Sequential(nn.Conv2d(width, width, 3, padding=1), nn.BatchNorm2d(width), nn.SiLU())
        self.boxes, self.classes = nn.Conv2d(width, 4, 1), nn.Conv2d(width, classes, 1)

    def forward(self, *features):
        sides = [side(feature) for side, feature in zip(self.sides, features)]
        for level in range(len(sides) - 1, 0, -1):
            sides[level - 1] = sides[level - 1] + F.interpolate(sides[level], scale_factor=2.0, mode="nearest")
        levels = [smooth(side) for smooth, side in zip(self.smooth, sides)]
        levels.append(self.coarser[0](features[-1]))
        levels.append(self.coarser[1](F.relu(levels[-1])))
        outputs = []
        for level in levels:
            x = self.head(level)
            outputs.append(torch.cat([F.softplus(self.boxes(x)), self.classes(x).sigmoid()], dim=1).flatten(2))
        return torch.cat(outputs, dim=2)


class GraphNetwork(nn.Module):
    """Messages along edges, summed at nodes, in a batch of graphs of the same edges."""

    def __init__(self, nodes: int, edges: int, width: int, layers: int) -> None:
        super().__init__()
        self.messages = nn.ModuleList(nn.Linear(2 * width, width) for _ in range(layers))
        self.updates = nn.ModuleList(nn.Linear(2 * width, width) for _ in range(layers))
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(layers))
        self.register_buffer("source", torch.randint(0, nodes, (edges,)))
        self.register_buffer("target", torch.randint(0, nodes, (edges,)))

    def forward(self, x):
        for message, update, norm in zip(self.messages, self.updates, self.norms):
            pairs = torch.cat([x[:, self.source], x[:, self.target]], dim=-1)
            sums = torch.zeros_like(x).index_add(1, self.target, F.gelu(message(pairs)))
            x = norm(x + F.gelu(update(torch.cat([x, sums], dim=-1))))
        return x.mean(1)


class FactorisedAttention(nn.Module):
    """Attention whose keys are weighed over places first, so that it is linear in their number; convolved values are added."""

    WINDOWS = ((3, 2), (5, 3), (7, 3))

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads, self.scale = heads, (width // heads) ** -0.5
        self.qkv, self.projection = nn.Linear(width, 3 * width), nn.Linear(width, width)
        head = width // heads
        self.shares = [count * head for _, count in self.WINDOWS]
        self.windows = nn.ModuleList(
            nn.Conv2d(share, share, window, padding=window // 2, groups=share)
            for share, (window, _) in zip(self.shares, self.WINDOWS)
        )

    def forward(self, x, side: int):
        batch, count, width = x.shape
        q, k, v = self.qkv(x).reshape(batch, count, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4).unbind(0)
        attended = q @ (k.softmax(dim=2).transpose(-2, -1) @ v)
        # The first value stands for the whole image and is not convolved.
        plane = v[:, :, 1:].transpose(-2, -1).reshape(batch, width, side, side)
        parts = [convolve(part) for convolve, part in zip(self.windows, plane.split(self.shares, dim=1))]
        local = torch.cat(parts, dim=1).reshape(batch, self.heads, width // self.heads, side * side).transpose(-2, -1)
        local = F.pad(q[:, :, 1:] * local, (0, 0, 1, 0))
        x = self.scale * attended + local
        return self.projection(x.transpose(1, 2).reshape(batch, count, width))


class CoaTBlock(nn.Module):
    def __init__(self, width: int, heads: int, ratio: int, places: nn.Module) -> None:
        super().__init__()
        self.places = places
        self.norms = nn.ModuleList(nn.LayerNorm(width, eps=1e-6) for _ in range(2))
        self.attention = FactorisedAttention(width, heads)
        self.mlp = nn.Sequential(nn.Linear(width, ratio * width), nn.GELU(), nn.Linear(ratio * width, width))

    def forward(self, x, side: int):
        batch, _, width = x.shape
        whole, plane = x[:, :1], x[:, 1:].transpose(1, 2).reshape(batch, width, side, side)
        plane = self.places(plane) + plane
        x = torch.cat([whole, plane.flatten(2).transpose(1, 2)], dim=1)
        x = x + self.attention(self.norms[0](x), side)
        return x + self.mlp(self.norms[1](x))


class CoaTStage(nn.Module):
    def __init__(self, given: int, width: int, patch: int, depth: int, heads: int, ratio: int) -> None:
        super().__init__()
        self.patches, self.norm = nn.Conv2d(given, width, patch, stride=patch), nn.LayerNorm(width)
        self.whole = nn.Parameter(torch.randn(1, 1, width) * 0.02)
        places = nn.Conv2d(width, width, 3, padding=1, groups=width)
        self.blocks = nn.ModuleList(CoaTBlock(width, heads, ratio, places) for _ in range(depth))

    def forward(self, x):
        x = self.patches(x)
        batch, width, side, _ = x.shape
        x = self.norm(x.flatten(2).transpose(1, 2))
        x = torch.cat([self.whole.expand(batch, -1, -1), x], dim=1)
        for block in self.blocks:
            x = block(x, side)
        return x, x[:, 1:].transpose(1, 2).reshape(batch, width, side, side)


class CoaT(nn.Module):
    """CoaT-Lite: stages of convolutional attention, one after the other."""

    def __init__(self, widths, depths, heads: int, ratios, classes: int = 1000) -> None:
        super().__init__()
        patches = [4] + [2] * (len(widths) - 1)
        sizes = zip((3, *widths), widths, patches, depths, ratios)
        self.stages = nn.ModuleList(
            CoaTStage(given, width, patch, depth, heads, ratio) for given, width, patch, depth, ratio in sizes
        )
        self.norm, self.head = nn.LayerNorm(widths[-1], eps=1e-6), nn.Linear(widths[-1], classes)

    def forward(self, x):
        for stage in self.stages:
            tokens, x = stage(x)
        return self.head(self.norm(tokens)[:, 0])


class RMSNorm(nn.Module):
    def __init__(self, width: int, eps: float = 1e-5) -> None:
        super().__init__()
        self.weight, self.eps = nn.Parameter(torch.ones(width)), eps

    def forward(self, x):
        wide = x.float()
        wide = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + self.eps)
        return self.weight * wide.to(x.dtype)


class Experts(nn.Module):
    """All experts on all tokens, weighed by the two that the router chose for each: nothing waits for the router."""

    def __init__(self, width: int, hidden: int, experts: int) -> None:
        super().__init__()
        self.router = nn.Linear(width, experts, bias=False)
        self.gate = nn.Parameter(torch.randn(experts, width, hidden) * width**-0.5)
        self.up = nn.Parameter(torch.randn(experts, width, hidden) * width**-0.5)
        self.down = nn.Parameter(torch.randn(experts, hidden, width) * hidden**-0.5)

    def forward(self, x):
        batch, length, width = x.shape
        flat = x.reshape(1, batch * length, width)
        chances = self.router(flat[0]).float().softmax(-1)
        best, chosen = chances.topk(2, dim=-1)
        best = best / best.sum(-1, keepdim=True)
        weights = torch.zeros_like(chances).scatter(1, chosen, best).to(x.dtype)
        made = (F.silu(flat @ self.gate) * (flat @ self.up)) @ self.down
        return (made * weights.t().unsqueeze(-1)).sum(0).reshape(batch, length, width)


class MixtureBlock(nn.Module):
    def __init__(self, width: int, heads: int, groups: int, hidden: int, experts: int) -> None:
        super().__init__()
        self.heads, self.groups, self.head = heads, groups, width // heads
        self.norms = nn.ModuleList(RMSNorm(width) for _ in range(2))
        self.q = nn.Linear(width, width, bias=False)
        self.k, self.v = (nn.Linear(width, groups * self.head, bias=False) for _ in range(2))
        self.out, self.experts = nn.Linear(width, width, bias=False), Experts(width, hidden, experts)

    def turned(self, x, cosine, sine):
        one, two = x.chunk(2, dim=-1)
        return x * cosine + torch.cat([-two, one], dim=-1) * sine

    def forward(self, x, cosine, sine):
        batch, length, width = x.shape
        y = self.norms[0](x)
        q = self.turned(self.q(y).view(batch, length, self.heads, self.head).transpose(1, 2), cosine, sine)
        k = self.turned(self.k(y).view(batch, length, self.groups, self.head).transpose(1, 2), cosine, sine)
        v = self.v(y).view(batch, length, self.groups, self.head).transpose(1, 2)
        k, v = (t.repeat_interleave(self.heads // self.groups, dim=1) for t in (k, v))
        attended = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(attended.transpose(1, 2).reshape(batch, length, width))
        return x + self.experts(self.norms[1](x))


class MixtureOfExperts(nn.Module):
    """A decoder with rotated places, grouped heads and two of several experts for each token."""

    def __init__(
        self, width: int = 1024, layers: int = 8, heads: int = 16, groups: int = 4, hidden: int = 1024, experts: int = 8,
        words: int = 32_000,
    ) -> None:  # fmt: skip
        super().__init__()
        self.head = width // heads
        self.words = nn.Embedding(words, width)
        self.blocks = nn.ModuleList(MixtureBlock(width, heads, groups, hidden, experts) for _ in range(layers))
        self.norm = RMSNorm(width)

    def forward(self, tokens):
        x = self.words(tokens)
        rates = 10_000.0 ** (-torch.arange(0, self.head, 2, device=x.device, dtype=torch.float32) / self.head)
        turns = torch.arange(tokens.shape[1], device=x.device, dtype=torch.float32)[:, None] * rates
        turns = torch.cat([turns, turns], dim=-1)
        cosine, sine = turns.cos().to(x.dtype), turns.sin().to(x.dtype)
        for block in self.blocks:
            x = block(x, cosine, sine)
        return self.norm(x)


class Mamba2Block(nn.Module):
    """State spaces as products of matrices: inside chunks as attention with a decay, between them as states."""

    def __init__(self, width: int, states: int, head: int, chunk: int) -> None:
        super().__init__()
        self.inner, self.states, self.head, self.chunk = 2 * width, states, head, chunk
        self.heads = self.inner // head
        self.norm, self.inner_norm = RMSNorm(width), RMSNorm(self.inner)
        self.entry = nn.Linear(width, 2 * self.inner + 2 * states + self.heads, bias=False)
        mixed = self.inner + 2 * states
        self.convolution = nn.Conv1d(mixed, mixed, 4, groups=mixed, padding=3)
        self.step_bias = nn.Parameter(torch.rand(self.heads) - 4.0)
        self.decay = nn.Parameter(torch.rand(self.heads))
        self.skip = nn.Parameter(torch.ones(self.heads))
        self.exit = nn.Linear(self.inner, width, bias=False)

    def forward(self, x):
        batch, length, _ = x.shape
        gate, mixed, steps = self.entry(self.norm(x)).split(
            [self.inner, self.inner + 2 * self.states, self.heads], dim=-1
        )
        mixed = F.silu(self.convolution(mixed.transpose(1, 2))[..., :length].transpose(1, 2))
        values, keys, queries = mixed.split([self.inner, self.states, self.states], dim=-1)
        steps = F.softplus(steps.float() + self.step_bias.float())
        values = values.reshape(batch, length, self.heads, self.head)
        y = self.scan(values * steps.to(x.dtype).unsqueeze(-1), steps * -self.decay.float().exp(), keys, queries)
        y = (y + values * self.skip.unsqueeze(-1)).reshape(batch, length, self.inner)
        return x + self.exit(self.inner_norm(y * F.silu(gate)))

    def scan(self, values, decays, keys, queries):
        batch, length, heads, head = values.shape
        chunks = length // self.chunk
        values = values.reshape(batch, chunks, self.chunk, heads, head).permute(0, 3, 1, 2, 4)
        decays = decays.reshape(batch, chunks, self.chunk, heads).permute(0, 3, 1, 2)
        keys = keys.reshape(batch, 1, chunks, self.chunk, self.states)
        queries = queries.reshape(batch, 1, chunks, self.chunk, self.states)
        sums = decays.cumsum(-1)
        inside = self.differences(sums).exp().to(values.dtype)
        near = (queries @ keys.transpose(-2, -1) * inside) @ values
        left = (sums[..., -1:] - sums).exp().to(values.dtype)
        made = keys.transpose(-2, -1) @ (values * left.unsqueeze(-1))
        # What every chunk begins with: the states of those before it, faded.
        ends = F.pad(sums[..., -1], (1, 0)).cumsum(-1)
        faded = self.differences(ends).exp()[..., :-1, 1:].to(values.dtype)
        begun = (faded @ made.flatten(3)).reshape(made.shape)
        far = (queries @ begun) * sums.exp().to(values.dtype).unsqueeze(-1)
        return (near + far).permute(0, 2, 3, 1, 4).reshape(batch, length, heads, head)

    @staticmethod
    def differences(sums):
        """The sum between every two places, later less earlier."""
        count = sums.shape[-1]
        later = torch.ones(count, count, dtype=torch.bool, device=sums.device).tril()
        return (sums.unsqueeze(-1) - sums.unsqueeze(-2)).masked_fill(~later, float("-inf"))


class Mamba2(nn.Module):
    def __init__(
        self, width: int = 768, layers: int = 24, states: int = 128, head: int = 64, chunk: int = 64, words: int = 50_288
    ) -> None:
        super().__init__()
        self.words = nn.Embedding(words, width)
        self.blocks = nn.ModuleList(Mamba2Block(width, states, head, chunk) for _ in range(layers))
        self.norm = RMSNorm(width)

    def forward(self, tokens):
        x = self.words(tokens)
        for block in self.blocks:
            x = block(x)
        return self.norm(x)
