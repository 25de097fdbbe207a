"""Many prompts continued at once, with a cache of keys and values.

What a step costs is the keys and values it reads. So rows that have ended leave the batch, and heads that share keys read them
once: copied for each head, as the usual attention does under a mask, they are most of the time of a step.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
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


@torch.inference_mode()
def decode(
    model: Any, prompts: Sequence[Sequence[int]], pad: int, ends: Collection[int], most: Sequence[int], pick: Pick
) -> list[list[int]]:
    """What follows each prompt, at most as many tokens as `most` says of it, up to the token with which it ends and without
    that."""
    model.set_attn_implementation(GROUPED)
    device = model.device
    # Left of the prompt, so that all replies begin at one place.
    longest = max(len(prompt) for prompt in prompts)
    tokens = torch.tensor([[pad] * (longest - len(prompt)) + list(prompt) for prompt in prompts], device=device)
    mask = torch.tensor([[0] * (longest - len(prompt)) + [1] * len(prompt) for prompt in prompts], device=device)
    positions = (mask.cumsum(dim=1) - 1).clamp(min=0)
    cache = DynamicCache(config=model.config)
    said: list[list[int]] = [[] for _ in prompts]
    # The prompt that each row of the batch continues.
    rows = list(range(len(prompts)))
    columns: list[torch.Tensor] = []
    for count in range(1, max(most) + 1):
        found = model(
            input_ids=tokens, attention_mask=mask, position_ids=positions, past_key_values=cache, use_cache=True,
            logits_to_keep=1,
        )
        tokens = pick(found.logits[:, -1])[:, None]
        mask = torch.cat([mask, mask.new_ones(len(rows), 1)], dim=1)
        positions = positions[:, -1:] + 1
        columns.append(tokens)
        if count % LOOK_EVERY and count < max(most):
            continue
        going = []
        for place, new in enumerate(torch.cat(columns, dim=1).tolist()):
            end = next((at for at, token in enumerate(new) if token in ends), None)
            text = said[rows[place]]
            text += new[:end]
            if end is None and len(text) < most[rows[place]]:
                going.append(place)
        columns = []
        if not going:
            break
        if len(going) < len(rows):
            kept = torch.tensor(going, device=device)
            cache.batch_select_indices(kept)
            tokens, mask, positions = tokens[kept], mask[kept], positions[kept]
            rows = [rows[place] for place in going]
    return [text[:limit] for text, limit in zip(said, most, strict=True)]
