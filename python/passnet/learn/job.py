"""What is asked of this process, as a JSON file that the Rust side writes."""

from __future__ import annotations

import json
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TypeVar


class JobError(Exception):
    """A job that cannot be done, in words for the user."""


@dataclass(frozen=True)
class TrainJob:
    """Low-rank adapters trained on conversations."""

    model: str
    """A Hugging Face folder or a GGUF file."""
    device: str
    data: list[str]
    """Files of lines with `messages`; a message of the model may have a `weight`, 0 for what is not to be learned."""
    out: str
    """The folder of the adapter."""
    adapter: str | None
    """An adapter to begin with."""
    rank: int
    alpha: float
    learning_rate: float
    epochs: int
    length: int
    """Tokens of one block; longer conversations are left out."""
    blocks_per_step: int
    seed: int
    checkpoint_steps: int
    dtype: str | None = None


@dataclass(frozen=True)
class ReplyJob:
    """Replies to conversations that arrive on standard input."""

    model: str
    device: str
    adapter: str | None
    max_new_tokens: int
    max_length: int
    """Tokens of prompt and reply together."""
    temperature: float
    seed: int
    dtype: str | None = None


J = TypeVar("J", TrainJob, ReplyJob)


def read_train_job(path: str) -> TrainJob:
    return _read(TrainJob, path)


def read_reply_job(path: str) -> ReplyJob:
    return _read(ReplyJob, path)


def _read(kind: type[J], path: str) -> J:
    try:
        given = json.loads(Path(path).read_text(encoding="utf-8"))
        names = {field.name for field in fields(kind)}
        unknown = sorted(set(given) - names)
        if unknown:
            raise JobError(f"{path}: unknown field `{unknown[0]}`")
        return kind(**given)
    except (OSError, ValueError, TypeError) as error:
        raise JobError(f"{path}: {error}") from error
