"""`rest="fastest"`: a graph in several ways, timed on the inputs of its first call, of which the fastest stays.

    eager          passes, and eager PyTorch for the rest
    as it is       eager PyTorch alone: a pass that is faster than its region by itself can still slow down what is around it
    inductor       passes, and TorchInductor for the rest
    no passes      TorchInductor alone: where its own fusions are better than the passes
    frozen         the same, with the weights as constants; where `freeze` allows it

What was chosen is noted below the library, twice. By graph, kinds of inputs, device and the whole library, with the regions
that keep their passes: the next process finds that before it asks for a match, and goes that way at once. And by the passes that
fit: where the library has changed, and these have not, the ways need not be timed again.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import torch.fx

from .options import Options
from .timing import alone, synchronize

EAGER, PLAIN, INDUCTOR, ALONE = "eager", "as it is", "inductor", "no passes"
WAYS = (EAGER, PLAIN, INDUCTOR, ALONE)
FROZEN = "frozen"
# With rest="inductor" and `freeze`.
FROZEN_INDUCTOR = "frozen inductor"
WITHOUT_PASSES = (PLAIN, ALONE, FROZEN)
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


@dataclass(frozen=True)
class Choice:
    """What an earlier process found to be the fastest."""

    way: str
    # The regions that keep their passes, each by the names of the nodes that it replaces; `None` where that was not noted.
    kept: frozenset[tuple[str, ...]] | None = None

    def text(self) -> str:
        return json.dumps({"way": self.way, "kept": None if self.kept is None else sorted(self.kept)})

    @classmethod
    def read(cls, text: str) -> Choice | None:
        """Whatever lies in the folder: what cannot be read was not noted."""
        try:
            noted = json.loads(text)
            kept = noted["kept"]
            choice = cls(str(noted["way"]), None if kept is None else frozenset(tuple(map(str, names)) for names in kept))
        except (ValueError, TypeError, KeyError, RecursionError):
            return None
        return choice if choice.way in (*WAYS, FROZEN) else None


def remembered(library: str, key: str) -> Choice | None:
    """What was chosen before."""
    try:
        return Choice.read((Path(library) / CHOICES / key).read_text())
    except (OSError, UnicodeDecodeError):
        return None


def remember(library: str, key: str, choice: Choice) -> None:
    folder = Path(library) / CHOICES
    # A library that cannot be written to is asked again next time.
    with contextlib.suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
        draft = folder / f".{key}.{os.getpid()}"
        draft.write_text(choice.text())
        draft.replace(folder / key)


def key_of(code: str, inputs: list[Any], device: torch.device, passes: Any, recorded: bool) -> str:
    kinds = [(tuple(map(str, v.shape)), str(v.dtype)) if isinstance(v, torch.Tensor) else str(v) for v in inputs]
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else f"cpu {torch.get_num_threads()}"
    facts = (code, kinds, name, torch.__version__, passes, recorded)
    return hashlib.sha256(repr(facts).encode()).hexdigest()[:32]


def early_key(graph: torch.fx.Graph, inputs: list[Any], device: torch.device, dropped: list[str], options: Options) -> str:
    """What the choice can depend on, as far as it is known without a match."""
    library = (digest(options.library), options.trust, options.measure, options.freeze, dropped)
    return key_of(str(graph), inputs, device, library, options.cuda_graphs)


def digest(library: str) -> str:
    """Of all entries of a library, and of what is known of each: which passes fit, and which of them may be used."""
    found = hashlib.sha256()
    # A library that is not there has no entries.
    with contextlib.suppress(OSError):
        for folder in sorted(name for name in os.listdir(library) if not name.startswith(".")):
            with contextlib.suppress(OSError):
                known = (Path(library) / folder / "entry.json").read_bytes()
                found.update(os.fsencode(folder) + b"\0" + hashlib.sha256(known).digest())
    return found.hexdigest()


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
