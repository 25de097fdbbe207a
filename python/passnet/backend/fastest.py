"""`rest="fastest"`: a graph in several ways, timed on the inputs of its first call, of which the fastest stays.

    eager          passes, and eager PyTorch for the rest
    as it is       eager PyTorch alone: a pass that is faster than its region by itself can still slow down what is around it
    inductor       passes, and TorchInductor for the rest
    no passes      TorchInductor alone: where its own fusions are better than the passes

What was chosen is noted below the library, by graph, kinds of inputs, device and passes: the next process compiles that way
only.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch

from .timing import alone, synchronize

EAGER, PLAIN, INDUCTOR, ALONE = "eager", "as it is", "inductor", "no passes"
WAYS = (EAGER, PLAIN, INDUCTOR, ALONE)
WITHOUT_PASSES = (PLAIN, ALONE)
# Below the library's folder: one file for each choice, with its name in it.
CHOICES = ".choices"
# How long ways are timed, all together, and in how many turns at least.
SECONDS = 0.5
TURNS = 7
# The part of a call that passes save, from which on they are tried with TorchInductor, too: compiling twice takes its time.
WORTH = 0.02
# Ways that are nearer to each other than this are timed in more turns.
CLOSE = 1.1
CLOSE_TURNS = 21


def remembered(library: str, key: str) -> str | None:
    """The way that was chosen before."""
    try:
        name = (Path(library) / CHOICES / key).read_text()
    except (OSError, UnicodeDecodeError):
        return None
    return name if name in WAYS else None


def remember(library: str, key: str, name: str) -> None:
    folder = Path(library) / CHOICES
    # A library that cannot be written to is asked again next time.
    with contextlib.suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
        draft = folder / f".{key}.{os.getpid()}"
        draft.write_text(name)
        draft.replace(folder / key)


def key_of(code: str, inputs: list[Any], device: torch.device, passes: list[str], recorded: bool) -> str:
    kinds = [(tuple(map(str, v.shape)), str(v.dtype)) if isinstance(v, torch.Tensor) else str(v) for v in inputs]
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else f"cpu {torch.get_num_threads()}"
    facts = (code, kinds, name, torch.__version__, sorted(passes), recorded)
    return hashlib.sha256(repr(facts).encode()).hexdigest()[:32]


@contextlib.contextmanager
def same_draws(device: torch.device) -> Iterator[None]:
    """Calls that are timed must not change what the program draws."""
    with torch.random.fork_rng(devices=[device] if device.type == "cuda" else [], device_type="cuda"):
        yield


def turns_of(times: dict[str, list[float]]) -> int:
    """How often ways are to be timed, after what is known of them."""
    best = sorted(min(seconds, default=0.0) for seconds in times.values())
    is_close = len(best) > 1 and best[1] < CLOSE * best[0]
    return CLOSE_TURNS if is_close else TURNS


def race(ways: dict[str, Callable[[], Any]], device: torch.device) -> dict[str, float]:
    """Seconds of one call in each way, timed in turns: the least of them, for whatever else runs on the machine only adds."""
    times: dict[str, list[float]] = {name: [] for name in ways}
    with alone(device):
        for way in ways.values():
            way()
        until = time.perf_counter() + SECONDS
        while len(times[EAGER]) < turns_of(times) or time.perf_counter() < until:
            for name, way in ways.items():
                synchronize(device)
                started = time.perf_counter()
                way()
                synchronize(device)
                times[name].append(time.perf_counter() - started)
    return {name: min(seconds) for name, seconds in times.items()}
