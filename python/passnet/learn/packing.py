"""Conversations as tokens with a loss on the model's own turns, several of them packed into a block.

What is to be learned is found by rendering a conversation up to each turn and after it: the text in between is the turn.
That holds for templates in which a later message does not change an earlier one, which is checked.
"""

from __future__ import annotations

import json
import random
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from passnet.learn.job import JobError

IGNORED = -100


@dataclass(frozen=True)
class Example:
    """One conversation."""

    tokens: list[int]
    labels: list[int]
    """The same, with `IGNORED` where nothing is to be learned."""

    def learned(self) -> int:
        return sum(label != IGNORED for label in self.labels)


def read_conversations(paths: Iterable[str]) -> list[list[dict[str, Any]]]:
    found = []
    for path in paths:
        for number, line in enumerate(Path(path).read_text(encoding="utf-8").splitlines(), 1):
            try:
                messages = json.loads(line)["messages"]
                if not all(isinstance(message["content"], str) for message in messages):
                    raise ValueError("a message without text")
            except (ValueError, KeyError, TypeError) as error:
                raise JobError(f"{path}:{number}:1: not a conversation: {error}") from error
            found.append(messages)
    return found


def rendered(tokenizer: Any, messages: Sequence[dict[str, Any]], reply_next: bool) -> str:
    plain = [{"role": message["role"], "content": message["content"]} for message in messages]
    return str(tokenizer.apply_chat_template(plain, tokenize=False, add_generation_prompt=reply_next))


def tokens_of(tokenizer: Any, messages: Sequence[dict[str, Any]], reply_next: bool) -> list[int]:
    return list(tokenizer(rendered(tokenizer, messages, reply_next), add_special_tokens=False)["input_ids"])


def encode(tokenizer: Any, messages: Sequence[dict[str, Any]]) -> Example:
    """Tokens, and labels on those turns of the model whose weight is not 0. The text is cut into tokens once."""
    text = ""
    learned: list[tuple[int, int]] = []
    for index, message in enumerate(messages):
        if message["role"] != "assistant":
            continue
        before = rendered(tokenizer, messages[:index], reply_next=True)
        after = rendered(tokenizer, messages[: index + 1], reply_next=False)
        if not before.startswith(text) or not after.startswith(before):
            raise JobError("the chat template changes earlier messages, so turns cannot be told apart")
        if message.get("weight", 1):
            learned.append((len(before), len(after)))
        text = after
    found = tokenizer(text, add_special_tokens=False, return_offsets_mapping=True)
    tokens, starts = list(found["input_ids"]), [start for start, _ in found["offset_mapping"]]
    labels = [IGNORED] * len(tokens)
    for begin, end in learned:
        first, last = bisect_left(starts, begin), bisect_left(starts, end)
        if first < len(starts) and starts[first] != begin:
            raise JobError("a token of the model's turn begins before it, so turns cannot be told apart")
        labels[first:last] = tokens[first:last]
    return Example(tokens, labels)


def pack(examples: Sequence[Example], length: int, order: random.Random) -> list[list[int]]:
    """Blocks of examples, by their numbers, of like lengths: filled up to the longest they have at most `length` tokens."""
    numbers = list(range(len(examples)))
    order.shuffle(numbers)
    numbers.sort(key=lambda number: len(examples[number].tokens))
    blocks: list[list[int]] = []
    for number in numbers:
        # In this order every next one is the longest so far.
        if blocks and (len(blocks[-1]) + 1) * len(examples[number].tokens) <= length:
            blocks[-1].append(number)
        else:
            blocks.append([number])
    order.shuffle(blocks)
    return blocks


def tensors(block: Sequence[Example], device: str) -> dict[str, torch.Tensor]:
    """One block, each example a row of its own, filled up on the right.

    No token sees what stands right of it, so nothing has to be masked. Packed one after another examples need a mask, and
    attention under a mask is several times as slow as causal attention.
    """
    longest = max(len(example.tokens) for example in block)

    def filled(values: list[int], fill: int) -> list[int]:
        return values + [fill] * (longest - len(values))

    return {
        "input_ids": torch.tensor([filled(example.tokens, 0) for example in block], device=device),
        "labels": torch.tensor([filled(example.labels, IGNORED) for example in block], device=device),
    }
