"""Many prompts continued at once, with a cache of keys and values.

What a step costs is the keys and values it reads, and the time to start its kernels. So heads that share keys read them once
(the usual attention copies them for each head under a mask), a step is recorded as a CUDA graph and replayed, and when half
of the rows have ended they leave the batch.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any

import torch
from transformers import AttentionInterface, AttentionMaskInterface, DynamicCache
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import sdpa_mask

# Tokens between two looks at who has ended: each look waits for the device.
LOOK_EVERY = 16
# Nucleus of the sampled tokens.
TOP_P = 0.95

GROUPED = "passnet_grouped"

Pick = Callable[[torch.Tensor], torch.Tensor]


def pick_by(temperature: float) -> Pick:
    """How the next token of each row is chosen from its logits."""
    if temperature <= 0:
        return lambda logits: logits.argmax(dim=-1)

    def sample(logits: torch.Tensor) -> torch.Tensor:
        chances, tokens = (logits.float() / temperature).softmax(dim=-1).sort(dim=-1, descending=True)
        # A token is kept as long as those before it have not reached the nucleus; the first always is.
        before = chances.cumsum(dim=-1) - chances
        place = torch.multinomial(chances.masked_fill(before >= TOP_P, 0.0), 1)
        return tokens.gather(-1, place)[:, 0]

    return sample


def grouped_attention(
    module: Any, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, attention_mask: torch.Tensor | None,
    scaling: float | None = None, **others: Any,
) -> tuple[torch.Tensor, None]:
    """Attention for one new token of each row: the heads of a group ask the keys they share as if they were tokens."""
    rows, heads, length, width = query.shape
    if length > 1:
        return sdpa_attention_forward(module, query, key, value, attention_mask, scaling=scaling, **others)
    groups = key.shape[1]
    asked = query.view(rows, groups, heads // groups, width)
    found = torch.nn.functional.scaled_dot_product_attention(asked, key, value, attn_mask=attention_mask, scale=scaling)
    return found.reshape(rows, 1, heads, width), None


AttentionInterface.register(GROUPED, grouped_attention)
AttentionMaskInterface.register(GROUPED, sdpa_mask)


class FixedCache:
    """Keys and values in memory that does not move, as a recorded step needs it; the model calls it as one of its own."""

    def __init__(self, layers: Iterable[tuple[torch.Tensor, torch.Tensor]], room: int) -> None:
        self.layers = []
        for keys, values in layers:
            rows, heads, self.length, width = keys.shape
            pair = (keys.new_zeros(rows, heads, room, width), values.new_zeros(rows, heads, room, values.shape[-1]))
            pair[0][:, :, : self.length], pair[1][:, :, : self.length] = keys, values
            self.layers.append(pair)
        # Where the next token goes: a tensor, so that a recorded step reads it anew.
        self.place = torch.tensor([self.length], device=self.layers[0][0].device)

    def update(
        self, key: torch.Tensor, value: torch.Tensor, layer: int, *_: Any, **__: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        keys, values = self.layers[layer]
        return keys.index_copy_(2, self.place, key), values.index_copy_(2, self.place, value)

    def get_seq_length(self, _layer: int = 0) -> int:
        return self.length


class Steps:
    """One token more for every row of a batch, again and again."""

    def __init__(
        self, model: Any, layers: Iterable[tuple[torch.Tensor, torch.Tensor]], seen: torch.Tensor, positions: torch.Tensor
    ) -> None:
        """`seen` says for each row and each place of the whole room which tokens are there; `positions` are the last ones."""
        self.model, self.seen, self.positions = model, seen, positions.clone()
        self.cache = FixedCache(layers, seen.shape[1])
        self.tokens = torch.zeros_like(positions)
        self.recorded: torch.cuda.CUDAGraph | None = None
        self.logits = torch.empty(0)

    def next(self, tokens: torch.Tensor) -> torch.Tensor:
        """The logits that follow these tokens."""
        self.tokens.copy_(tokens)
        self.seen.index_fill_(1, self.cache.place, True)
        self.positions += 1
        if self.tokens.is_cuda and self.recorded is None:
            self._record()
        if self.recorded is not None:
            self.recorded.replay()
        else:
            self._run()
        self.cache.place += 1
        self.cache.length += 1
        return self.logits

    def _run(self) -> None:
        found = self.model(
            input_ids=self.tokens, attention_mask=self.seen[:, None, None, :], position_ids=self.positions,
            past_key_values=self.cache, use_cache=True, logits_to_keep=1,
        )
        self.logits = found.logits[:, -1]

    def _record(self) -> None:
        # Libraries set themselves up in the first runs, which a recording cannot hold. They all write the same place.
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            self._run()
            self._run()
        torch.cuda.current_stream().wait_stream(stream)
        recorded = torch.cuda.CUDAGraph()
        with torch.cuda.graph(recorded):
            self._run()
        self.recorded = recorded

    def keep(self, rows: torch.Tensor) -> Steps:
        """The same with some of the rows."""
        length = self.cache.length
        layers = ((keys[rows, :, :length], values[rows, :, :length]) for keys, values in self.cache.layers)
        return Steps(self.model, layers, self.seen[rows], self.positions[rows])


@torch.inference_mode()
def decode(
    model: Any, prompts: Sequence[Sequence[int]], pad: int, ends: Collection[int], most: Sequence[int], pick: Pick
) -> list[list[int]]:
    """What follows each prompt, at most as many tokens as `most` says of it, up to the token with which it ends and without
    that."""
    model.set_attn_implementation(GROUPED)
    steps, logits = begin(model, prompts, pad, max(most))
    said: list[list[int]] = [[] for _ in prompts]
    # The prompt that each row of the batch continues, and the rows that have not ended.
    rows, going = list(range(len(prompts))), set(range(len(prompts)))
    columns: list[torch.Tensor] = []
    for count in range(1, max(most) + 1):
        tokens = pick(logits)[:, None]
        columns.append(tokens)
        if count % LOOK_EVERY == 0 or count == max(most):
            for place, new in enumerate(torch.cat(columns, dim=1).tolist()):
                if rows[place] in going:
                    end = next((at for at, token in enumerate(new) if token in ends), None)
                    said[rows[place]] += new[:end]
                    if end is not None or len(said[rows[place]]) >= most[rows[place]]:
                        going.remove(rows[place])
            columns = []
            if not going or count == max(most):
                break
            if 2 * len(going) <= len(rows):
                kept = torch.tensor([place for place, row in enumerate(rows) if row in going], device=tokens.device)
                steps, tokens = steps.keep(kept), tokens[kept]
                rows = [row for row in rows if row in going]
        logits = steps.next(tokens)
    return [text[:limit] for text, limit in zip(said, most, strict=True)]


def begin(model: Any, prompts: Sequence[Sequence[int]], pad: int, most: int) -> tuple[Steps, torch.Tensor]:
    """The prompts read, and the logits of the first token of each reply."""
    device = model.device
    # Left of the prompt, so that all replies begin at one place.
    longest = max(len(prompt) for prompt in prompts)
    tokens = torch.tensor([[pad] * (longest - len(prompt)) + list(prompt) for prompt in prompts], device=device)
    mask = torch.tensor([[0] * (longest - len(prompt)) + [1] * len(prompt) for prompt in prompts], device=device)
    positions = (mask.cumsum(dim=1) - 1).clamp(min=0)
    cache = DynamicCache(config=model.config)
    found = model(
        input_ids=tokens, attention_mask=mask, position_ids=positions, past_key_values=cache, use_cache=True,
        logits_to_keep=1,
    )
    seen = torch.zeros(len(prompts), longest + most, dtype=torch.bool, device=device)
    seen[:, :longest] = mask.bool()
    # One layer after the other, so that not both caches are whole at once.
    layers = ((layer.keys, layer.values) for layer in iter(lambda: cache.layers.pop(0) if cache.layers else None, None))
    return Steps(model, layers, seen, positions[:, -1:]), found.logits[:, -1]
