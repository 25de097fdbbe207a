"""Replies of a model to many conversations at once.

A line in: `{"conversations": [[{"role", "content"}, …], …]}`. A line out: `{"replies": [{"text", "stop", "input", "output"},
…]}` in the same order, or `{"error": …}`. The first line out is `{"ready": true}`.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, TextIO

import torch

from passnet.learn import lora, weights
from passnet.learn.decode import decode, pick_by
from passnet.learn.job import ReplyJob
from passnet.learn.packing import tokens_of


def serve(job: ReplyJob, lines: TextIO, out: TextIO) -> None:
    torch.manual_seed(job.seed)
    model, tokenizer = weights.load(job.model, job.device, job.dtype)
    if job.adapter:
        lora.merge(lora.load(model, job.adapter), model)
    print(json.dumps({"ready": True}), file=out, flush=True)
    for line in lines:
        try:
            answer = {"replies": reply(model, tokenizer, json.loads(line)["conversations"], job)}
        except (ValueError, KeyError, TypeError, RuntimeError) as error:
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), file=out, flush=True)


def reply(model: Any, tokenizer: Any, conversations: Sequence[Any], job: ReplyJob) -> list[dict[str, Any]]:
    """One reply each. A conversation that leaves no room for a reply gets none."""
    prompts = [tokens_of(tokenizer, messages, reply_next=True) for messages in conversations]
    replies: list[dict[str, Any]] = [{"text": "", "stop": "too_long", "input": len(p), "output": 0} for p in prompts]
    fitting = [index for index, prompt in enumerate(prompts) if len(prompt) < job.max_length]
    if not fitting:
        return replies
    ends = ends_of(model, tokenizer)
    asked = [prompts[index] for index in fitting]
    most = [min(job.max_new_tokens, job.max_length - len(prompt)) for prompt in asked]
    found = decode(model, asked, tokenizer.pad_token_id, ends, most, pick_by(job.temperature))
    for index, said, limit in zip(fitting, found, most, strict=True):
        replies[index] = {
            "text": tokenizer.decode(said, skip_special_tokens=True),
            # As long as it may be and without an end; one that ends with the last token counts as cut.
            "stop": "length" if len(said) == limit else "done",
            "input": len(prompts[index]),
            "output": len(said),
        }
    return replies


def ends_of(model: Any, tokenizer: Any) -> set[int]:
    """The tokens with which a reply ends."""
    listed = model.generation_config.eos_token_id
    ends = set(listed) if isinstance(listed, list) else {listed}
    return {token for token in ends | {tokenizer.eos_token_id} if token is not None}
