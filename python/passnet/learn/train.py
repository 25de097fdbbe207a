"""Supervised fine-tuning of adapters: a plain loop that can be killed anywhere and goes on."""

from __future__ import annotations

import json
import math
import os
import random
import time
from pathlib import Path
from typing import Any

import torch

from passnet.learn import lora, weights
from passnet.learn.job import JobError, TrainJob
from passnet.learn.packing import Example, IGNORED, encode, pack, read_conversations, tensors

CHECKPOINT = "checkpoint.pt"
LOSSES = "losses.jsonl"
DONE = "done.json"
# Positions whose logits exist at once: a vocabulary is long.
CHUNK = 1024
WARMUP = 0.05
CLIP = 1.0


def train(job: TrainJob) -> None:
    """Trains to the end of the job, from its checkpoint where there is one; tells of each step on standard output."""
    out = Path(job.out)
    out.mkdir(parents=True, exist_ok=True)
    if (out / DONE).exists():
        return
    torch.manual_seed(job.seed)
    model, tokenizer = weights.load(job.model, job.device, job.dtype)
    layers = lora.load(model, job.adapter) if job.adapter else lora.add(model, job.rank, job.alpha, job.seed)
    examples, too_long = prepare(tokenizer, job)
    steps = plan(examples, job)
    parameters = [getattr(layer, part) for layer in layers.values() for part in ("lora_A", "lora_B")]
    optimizer = torch.optim.AdamW(parameters, lr=job.learning_rate, weight_decay=0.0)
    first = resume(out, layers, optimizer)
    say(event="begin", steps=len(steps), first=first, examples=len(examples), too_long=too_long,
        tokens=sum(len(example.tokens) for example in examples), learned=sum(example.learned() for example in examples))
    forget_losses_from(out, first)
    started, parent = time.monotonic(), os.getppid()
    for number in range(first, len(steps)):
        for group in optimizer.param_groups:
            group["lr"] = job.learning_rate * rate(number, len(steps))
        loss = step(model, [[examples[i] for i in block] for block in steps[number]], job.device)
        if os.getppid() != parent:
            # Whoever started this was killed, and another one may be at work on the same files already.
            raise JobError("whoever started this training is gone")
        torch.nn.utils.clip_grad_norm_(parameters, CLIP)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        note_loss(out, number, loss)
        done = number + 1
        left = (time.monotonic() - started) / (done - first) * (len(steps) - done)
        say(event="step", step=done, steps=len(steps), loss=loss, seconds_left=left)
        if done % job.checkpoint_steps == 0 and done < len(steps):
            keep(out, done, layers, optimizer)
    rank, alpha = shape_of(layers)
    lora.save(layers, job.out, job.model, rank, alpha)
    (out / DONE).write_text(json.dumps({"steps": len(steps), "examples": len(examples), "too_long": too_long}) + "\n")
    (out / CHECKPOINT).unlink(missing_ok=True)


def prepare(tokenizer: Any, job: TrainJob) -> tuple[list[Example], int]:
    """The conversations that fit, and how many do not."""
    encoded = [encode(tokenizer, messages) for messages in read_conversations(job.data)]
    fitting = [example for example in encoded if len(example.tokens) <= job.length and example.learned() > 0]
    if not fitting:
        raise JobError(f"none of {len(encoded)} conversations has at most {job.length} tokens and something to learn")
    return fitting, len(encoded) - len(fitting)


def plan(examples: list[Example], job: TrainJob) -> list[list[list[int]]]:
    """The blocks of every step of all epochs: the same whenever it is asked, so a step's number says what it does."""
    steps: list[list[list[int]]] = []
    for epoch in range(job.epochs):
        blocks = pack(examples, job.length, random.Random(f"{job.seed} {epoch}"))
        steps += [blocks[at : at + job.blocks_per_step] for at in range(0, len(blocks), job.blocks_per_step)]
    return steps


def rate(step: int, steps: int) -> float:
    """Rises for a few steps, then falls along half a cosine to a tenth."""
    warm = max(1, round(WARMUP * steps))
    if step < warm:
        return (step + 1) / warm
    return 0.1 + 0.45 * (1 + math.cos(math.pi * (step - warm) / max(1, steps - warm)))


def step(model: Any, blocks: list[list[Example]], device: str) -> float:
    """Adds up gradients of the mean loss over all learned tokens of the blocks."""
    learned = sum(example.learned() for block in blocks for example in block)
    total = 0.0
    for block in blocks:
        loss = block_loss(model, tensors(block, device)) / learned
        loss.backward()
        total += float(loss.detach())
    return total


def block_loss(model: Any, block: dict[str, torch.Tensor]) -> torch.Tensor:
    """The summed loss of a block: hidden states once, logits only where something is learned, some at a time."""
    labels = block["labels"][:, 1:]
    hidden = model.model(input_ids=block["input_ids"], use_cache=False).last_hidden_state
    learned = labels != IGNORED
    hidden, labels = hidden[:, :-1][learned], labels[learned]
    total = torch.zeros((), device=hidden.device)
    for at in range(0, len(labels), CHUNK):
        total = total + torch.utils.checkpoint.checkpoint(
            chunk_loss, model.lm_head, hidden[at : at + CHUNK], labels[at : at + CHUNK], use_reentrant=False
        )
    return total


def chunk_loss(head: torch.nn.Module, hidden: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.cross_entropy(head(hidden).float(), labels, reduction="sum")


def keep(out: Path, step: int, layers: dict[str, lora.LowRank], optimizer: torch.optim.Optimizer) -> None:
    """Whole or not at all."""
    partial = out / (CHECKPOINT + ".partial")
    torch.save({"step": step, "layers": lora.state(layers), "optimizer": optimizer.state_dict()}, partial)
    os.replace(partial, out / CHECKPOINT)


def resume(out: Path, layers: dict[str, lora.LowRank], optimizer: torch.optim.Optimizer) -> int:
    """The step to go on with."""
    path = out / CHECKPOINT
    if not path.exists():
        return 0
    kept = torch.load(path, map_location="cpu", weights_only=True)
    lora.put(layers, kept["layers"])
    optimizer.load_state_dict(kept["optimizer"])
    return int(kept["step"])


def note_loss(out: Path, step: int, loss: float) -> None:
    with (out / LOSSES).open("a", encoding="utf-8") as file:
        file.write(json.dumps({"step": step, "loss": loss}) + "\n")


def forget_losses_from(out: Path, first: int) -> None:
    """Steps that are done again are told once."""
    path = out / LOSSES
    if path.exists():
        lines = [line for line in path.read_text(encoding="utf-8").splitlines() if line.endswith("}")]
        kept = [line for line in lines if json.loads(line)["step"] < first]
        path.write_text("".join(line + "\n" for line in kept), encoding="utf-8")


def shape_of(layers: dict[str, lora.LowRank]) -> tuple[int, float]:
    layer = next(iter(layers.values()))
    rank = layer.lora_A.shape[0]
    return rank, layer.scale * rank


def say(**what: Any) -> None:
    print(json.dumps(what), flush=True)
