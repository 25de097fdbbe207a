#!/usr/bin/env python3
"""Times the models of `model_set.py` in all ways of `passnet model bench`, and writes a table.

    python tools/model_table.py --out table.jsonl --library LIBRARY [--batch 1,16] [--ways …] [--only bert_base,vit_base]
    python tools/model_table.py --show table.jsonl [--against inductor-reduce-overhead]

Needs PyTorch and transformers, no network, and the `passnet` program: PASSNET_PROGRAM, or on the path. With `--side-by-side N`,
N models at a time are compiled, and then timed one after the other while the others rest. Results are added to the file model
by model: a run that is cut off loses those that were not timed yet.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from queue import Empty, Queue

TOOLS = Path(__file__).resolve().parent
MODELS = (
    "resnet50", "efficientnet_b0", "convnext_tiny", "vit_base", "coat_lite_small", "swin_tiny", "bert_base", "deberta_v2",
    "mobilevit", "mixture_of_experts", "state_space", "unet", "detection_neck", "audio_encoder", "graph_network",
)  # fmt: skip

# Parts of a round's time after which no way is begun any more, a way that still compiles is given up, and a model is.
BEGIN, READY, GIVEN_UP = 0.65, 0.78, 0.88


class Measured:
    """One model at one batch size, in a process of its own."""

    def __init__(self, name: str, batch: str, given: argparse.Namespace, share: float) -> None:
        self.name, self.batch = name, batch
        options = {"library": given.library.replace("{model}", name), "trust": given.trust}
        if given.solve:
            options |= {"solve": True, "solve_seconds": given.solve}
        factory = f"{TOOLS / 'model_set.py'}:{'small_' if given.small else ''}{name}"
        command = [sys.executable, "-m", "passnet.backend.bench", factory, "--batch", batch, "--json", "--wait"]
        command += ["--seconds", str(given.seconds), "--options", json.dumps(options)]
        begin, ready = (min(limit, part * share) for limit, part in ((given.begin_within, BEGIN), (given.limit, READY)))
        command += ["--begin-within", str(begin), "--ready-within", str(ready)]
        if given.cold:
            command.append("--cold")
        for option in ("ways", "device", "dtype"):
            if getattr(given, option):
                command += [f"--{option}", getattr(given, option)]
        environment = {**os.environ, "PYTHONPATH": str(TOOLS.parent / "python"), "HF_HUB_OFFLINE": "1"}
        self.process = subprocess.Popen(
            command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.lines: Queue[str] = Queue()
        threading.Thread(target=self.read, daemon=True).start()

    def read(self) -> None:
        for line in self.process.stdout:
            self.lines.put(line)
        self.lines.put("")

    def line(self, until: float) -> str | None:
        """The next line; `None` at the end, or where it takes too long."""
        try:
            return self.lines.get(timeout=max(until - time.monotonic(), 0.1)) or None
        except Empty:
            print(f"{self.name}, batch {self.batch}: too late", file=sys.stderr, flush=True)
            return None

    def is_ready(self, until: float) -> bool:
        line = self.line(until)
        while line is not None and line.strip() != "ready":
            line = self.line(until)
        return line is not None

    def result(self, until: float) -> dict | None:
        self.process.stdin.write("go\n")
        self.process.stdin.flush()
        line = self.line(until)
        while line is not None and not line.startswith("{"):
            line = self.line(until)
        return None if line is None else {**json.loads(line), "name": self.name}

    def end(self) -> None:
        self.process.kill()
        self.process.wait()


def measure(given: argparse.Namespace) -> int:
    names = given.only.split(",") if given.only else list(MODELS)
    unknown = [name for name in names if name not in MODELS]
    if unknown:
        print(f"there is no model {unknown[0]!r}; there are {', '.join(MODELS)}", file=sys.stderr)
        return 2
    wanted = [(name, batch) for batch in given.batch.split(",") for name in names]
    rounds = [wanted[first : first + given.side_by_side] for first in range(0, len(wanted), given.side_by_side)]
    end = time.monotonic() + given.within
    failed = False
    for number, models in enumerate(rounds):
        share = (end - time.monotonic()) / (len(rounds) - number)
        failed |= not measure_round(models, given, max(share, 1.0))
    return 1 if failed else 0


def measure_round(models: list[tuple[str, str]], given: argparse.Namespace, share: float) -> bool:
    """Compiles some models side by side and times them one after the other, in about so many seconds; whether all were measured."""
    until = time.monotonic() + min(given.limit, GIVEN_UP * share)
    running = [Measured(name, batch, given, share) for name, batch in models]
    measured = 0
    try:
        # All of them, before the first is timed: whoever compiles disturbs.
        ready = [one for one in running if one.is_ready(until)]
        for one in running:
            if one not in ready:
                one.end()
        for one in ready:
            result = one.result(until + min(given.limit, (1 - GIVEN_UP) * share))
            one.end()
            if result is None:
                continue
            measured += 1
            with open(given.out, "a") as out:
                out.write(json.dumps(result) + "\n")
            print(row(result, given.against), flush=True)
    finally:
        for one in running:
            one.end()
    return measured == len(models)


def row(result: dict, against: str) -> str:
    cells = [f"{result['name']:20} {result['batch']:3}"]
    times = {timed["way"]: timed["ms"] for timed in result["ways"] if timed["ms"]}
    for timed in result["ways"]:
        if timed["ms"] is None:
            cells.append(f"{timed['way']}: {(timed['error'] or '')[:60]}")
            continue
        wrong = "" if timed["right"] else " WRONG"
        cells.append(f"{timed['way']} {timed['ms']:.3f}{wrong}")
    for way, ms in times.items():
        if way.startswith("passnet") and against in times:
            cells.append(f"{way} is {times[against] / ms:.2f}x {against}")
    return " | ".join(cells)


def show(given: argparse.Namespace) -> int:
    if not Path(given.show).exists():
        print(f"{given.show} is not there: nothing was measured", file=sys.stderr)
        return 1
    results = [json.loads(line) for line in Path(given.show).read_text().splitlines() if line.strip()]
    last = {(result["name"], result["batch"]): result for result in results}
    ratios: dict[tuple[int, str, str], list[float]] = {}
    for result in last.values():
        print(row(result, given.against))
        times = {timed["way"]: timed["ms"] for timed in result["ways"] if timed["ms"]}
        for way in (way for way in times if way.startswith("passnet")):
            for other in ("eager", "eager-cudagraph", "inductor", "inductor-reduce-overhead"):
                if other in times:
                    ratios.setdefault((result["batch"], way, other), []).append(times[other] / times[way])
    for (batch, way, other), values in sorted(ratios.items()):
        mean = math.exp(sum(map(math.log, values)) / len(values))
        print(f"batch {batch}: {way} is {mean:.2f}x {other}, geometric mean of {len(values)} models")
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", default="model_table.jsonl")
    parser.add_argument("--show", help="the table of a file that is there")
    parser.add_argument("--library", default="library", help="`{model}` in it is the name of the model")
    parser.add_argument("--trust", default="judged")
    parser.add_argument("--batch", default="1,16")
    ways = "eager,eager-cudagraph,passnet-cudagraph,inductor-reduce-overhead,passnet-fastest,inductor"
    parser.add_argument("--ways", default=ways)
    parser.add_argument("--only", default="", help="some of the models")
    parser.add_argument("--solve", type=float, default=0.0, help="let the solver work so many seconds on each graph")
    parser.add_argument("--seconds", type=float, default=1.0, help="seconds of timing for each way")
    parser.add_argument("--side-by-side", type=int, default=1, metavar="N", help="models that are compiled at a time")
    parser.add_argument("--small", action="store_true", help="the small models, for a try")
    parser.add_argument("--limit", type=float, default=600.0, help="seconds for compiling, and for timing, at the most")
    parser.add_argument("--within", type=float, default=math.inf, help="seconds for everything, shared by the rounds")
    parser.add_argument("--cold", action="store_true", help="compile every way with empty caches of TorchInductor's")
    parser.add_argument("--begin-within", type=float, default=math.inf, help="begin to compile no way after so many seconds")
    parser.add_argument("--against", default="inductor-reduce-overhead")
    parser.add_argument("--device", default="")
    parser.add_argument("--dtype", default="")
    given = parser.parse_args()
    return show(given) if given.show else measure(given)


if __name__ == "__main__":
    sys.exit(main())
