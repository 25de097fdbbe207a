#!/usr/bin/env python3
"""Times the models of `model_set.py` in all ways of `passnet model bench`, and writes a table.

    python tools/model_table.py --out table.jsonl --library LIBRARY [--batch 1,16] [--ways …] [--only bert_base,vit_base]
    python tools/model_table.py --show table.jsonl [--against inductor-reduce-overhead]

Needs PyTorch and transformers, no network, and the `passnet` program: PASSNET_PROGRAM, or on the path. With `--side-by-side N`,
N models at a time are compiled, and then timed one after the other while the others rest; with `--resting M`, M models are
compiled, N at a time, before the first of them is timed. Results are added to the file model by model: a run that is cut off
loses those that were not timed yet.

A sitting with a warm library has two parts. The first lets `passnet-fastest` make its choices and times nothing else; it may be
called again for what it did not get done. The second compiles every way in new processes, with empty caches of TorchInductor's:

    python tools/model_table.py --choose --library LIBRARY --side-by-side 16 --within 280 --out choices.jsonl
    python tools/model_table.py --cold --library LIBRARY --side-by-side 16 --resting 30 --within 420 --seconds 0.6 --out table.jsonl
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
from collections.abc import Callable
from pathlib import Path
from queue import Empty, Queue

TOOLS = Path(__file__).resolve().parent
MODELS = (
    "resnet50", "efficientnet_b0", "convnext_tiny", "vit_base", "coat_lite_small", "swin_tiny", "bert_base", "deberta_v2",
    "mobilevit", "mixture_of_experts", "state_space", "unet", "detection_neck", "audio_encoder", "graph_network",
)  # fmt: skip

# Those that take long to compile are begun first, so that nobody waits for one of them alone.
LONG = ("state_space", "deberta_v2", "swin_tiny", "coat_lite_small", "efficientnet_b0", "mixture_of_experts", "mobilevit")
WAYS = "eager,eager-cudagraph,inductor-reduce-overhead,passnet-fastest,inductor"
# Parts of the time for compiling after which no way is begun any more, and a way that still compiles is given up.
BEGIN, READY = 0.8, 0.93
# Seconds that a model takes when it is timed, beside the times.
BESIDE = 1.0
# More memory than this, of eager's, is told.
MUCH_MEMORY = 1.2


class Measured:
    """One model at one batch size, in a process of its own."""

    def __init__(self, name: str, batch: str, given: argparse.Namespace, ways: list[str], until: float) -> None:
        self.name, self.batch = name, batch
        options = {"library": given.library.replace("{model}", name), "trust": given.trust}
        if given.solve:
            options |= {"solve": True, "solve_seconds": given.solve}
        factory = f"{TOOLS / 'model_set.py'}:{'small_' if given.small else ''}{name}"
        command = [sys.executable, "-m", "passnet.backend.bench", factory, "--batch", batch, "--json", "--wait"]
        command += ["--seconds", str(given.seconds), "--options", json.dumps(options), "--ways", ",".join(ways)]
        now = time.monotonic()
        begin, ready = (min(given.begin_within, BEGIN * (until - now)), min(given.limit, READY * (until - now)))
        command += ["--begin-within", str(begin), "--ready-within", str(ready), "--since", str(now)]
        if given.cold:
            command.append("--cold")
        for option in ("device", "dtype"):
            if getattr(given, option):
                command += [f"--{option}", getattr(given, option)]
        environment = {**shared_out(given), **os.environ}
        environment |= {"PYTHONPATH": str(TOOLS.parent / "python"), "HF_HUB_OFFLINE": "1"}
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
    if given.choose:
        given.ways, given.seconds, given.cold = "passnet-fastest", 0.0, False
        # A second call goes on where the first one ended.
        known = {(name, str(batch)) for name, batch in read(given.out)}
        wanted = [pair for pair in wanted if pair not in known]
        given.resting = len(wanted)
    many = given.resting or given.side_by_side
    rounds = [wanted[first : first + many] for first in range(0, len(wanted), many)]
    end = time.monotonic() + given.within
    failed = False
    for number, models in enumerate(rounds):
        share = (end - time.monotonic()) / (len(rounds) - number)
        failed |= not measure_round(models, given, max(share, 1.0))
    return 1 if failed else 0


def measure_round(models: list[tuple[str, str]], given: argparse.Namespace, share: float) -> bool:
    """Compiles some models side by side and times them one after the other, in about so many seconds; whether all were measured."""
    begun = time.monotonic()
    ways = given.ways.split(",")
    # What timing will take; where there is too little time for both, half of it is for each.
    timing = 0.0 if given.choose else len(models) * (len(ways) * given.seconds + BESIDE)
    until = begun + min(given.limit, max(share - 1.1 * timing, share / 2))
    end = begun + share if math.isfinite(share) else math.inf
    running: list[Measured] = []
    measured: list[bool] = []
    writing = threading.Lock()

    def finish(one: Measured) -> None:
        """Times it, and keeps what was found."""
        result = one.result(min(end, time.monotonic() + given.limit))
        one.end()
        if result is None:
            return
        is_whole = all(timed["ms"] for timed in result["ways"])
        with writing:
            measured.append(is_whole)
            if is_whole or not given.choose:
                with open(given.out, "a") as out:
                    out.write(json.dumps(result) + "\n")
            print(choice(result) if given.choose else row(result, given.against), flush=True)

    try:
        # All of them, before the first is timed: whoever compiles disturbs. A choice alone is done when it is made.
        ready = compiled(models, given, ways, until, running, finish if given.choose else lambda one: None)
        for one in [] if given.choose else ready:
            finish(one)
    finally:
        for one in running:
            one.end()
    return measured.count(True) == len(models)


def compiled(
    models: list[tuple[str, str]],
    given: argparse.Namespace,
    ways: list[str],
    until: float,
    running: list[Measured],
    then: Callable[[Measured], None],
) -> list[Measured]:
    """Those that are ready in time, in the order of the models; `running` are all that were begun. So many compile at a time."""
    order = sorted(models, key=lambda model: LONG.index(model[0]) if model[0] in LONG else len(LONG))
    turns: Queue[tuple[int, tuple[str, str]]] = Queue()
    for turn in enumerate(order):
        turns.put(turn)
    ready = []

    def work() -> None:
        while time.monotonic() < until:
            try:
                turn, (name, batch) = turns.get_nowait()
            except Empty:
                return
            # Ways change places from model to model: what a process compiles later has it easier.
            one = Measured(name, batch, given, turned(ways) if turn % 2 else ways, until)
            running.append(one)
            if one.is_ready(until):
                ready.append(one)
                then(one)
            else:
                one.end()

    workers = [threading.Thread(target=work) for _ in range(min(given.side_by_side, len(models)))]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return sorted(ready, key=lambda one: models.index((one.name, one.batch)))


def turned(ways: list[str]) -> list[str]:
    """The ways that compile in the opposite order."""
    compiling = [way for way in ways if not way.startswith("eager")]
    return [way for way in ways if way.startswith("eager")] + compiling[::-1]


def shared_out(given: argparse.Namespace) -> dict[str, str]:
    """Settings for processes that compile side by side on a machine with a GPU: each has its part of the cores."""
    if given.side_by_side == 1 or given.device == "cpu":
        return {}
    cores = str(max(1, len(os.sched_getaffinity(0)) // given.side_by_side))
    names = ("TORCHINDUCTOR_COMPILE_THREADS", "OMP_NUM_THREADS", "RAYON_NUM_THREADS")
    return {name: cores for name in names}


def choice(result: dict) -> str:
    """What `fastest` chose for each graph of a model, and how long that took."""
    timed = result["ways"][0]
    said = timed["error"] or f"{', '.join(timed['chosen'] or ['no graph'])} in {timed['compile_seconds']:.0f} s"
    return f"{result['name']:20} {result['batch']:3} | {said}"


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
    last = read(given.show)
    for result in last.values():
        print(row(result, given.against))
    names = given.only.split(",") if given.only else list(MODELS)
    for batch in sorted({batch for _, batch in last}):
        results = [result for (_, at), result in last.items() if at == batch]
        ours = sorted({timed["way"] for result in results for timed in result["ways"] if timed["way"].startswith("passnet")})
        for way in ours:
            for line in told(results, way):
                print(f"batch {batch}: {way} {line}")
        for line in lacking(results, names):
            print(f"batch {batch}: {line}")
    return 0


def read(path: str) -> dict[tuple[str, int], dict]:
    """The last line of each model and batch."""
    if not Path(path).exists():
        return {}
    results = [json.loads(line) for line in Path(path).read_text().splitlines() if line.strip()]
    return {(result["name"], result["batch"]): result for result in results}


def told(results: list[dict], way: str) -> list[str]:
    """What one way of ours is beside the others, at one batch size."""
    lines = []
    for other in OTHERS:
        speedups = pairs(results, other, way, "ms")
        if speedups:
            lines.append(f"is {mean(speedups):.2f}x {other}, geometric mean of {len(speedups)} models")
    for other in ("inductor", "inductor-reduce-overhead"):
        for clock, what in (("compile_seconds", "to compile"), ("ready_seconds", "until all is compiled and recorded")):
            shares = pairs([result for result in results if is_known(result, way)], way, other, clock)
            if shares:
                lines.append(f"takes {mean(shares):.2f} of {other}'s time {what}{most(shares)}")
    shares = pairs(results, way, "eager", "memory")
    if shares:
        lines.append(f"takes {mean(shares):.2f} of eager's memory{most(shares)}")
        much = [f"{name} {share:.2f}" for name, share in shares.items() if share > MUCH_MEMORY]
        lines.append(f"takes more than {MUCH_MEMORY} of eager's memory on: {', '.join(much) or 'none'}")
    chosen = [result["name"] for result in results if way in by_way(result) and not is_known(result, way)]
    if way == "passnet-fastest" and chosen:
        lines.append(f"had to choose in this sitting, which is in no compile time above: {', '.join(chosen)}")
    return lines


# What a way of ours is held against.
OTHERS = ("eager", "eager-cudagraph", "inductor", "inductor-reduce-overhead", "inductor-freezing")


def lacking(results: list[dict], names: list[str]) -> list[str]:
    """What is wrong, and what is not there."""
    wrong = [f"{result['name']} {timed['way']}" for result in results for timed in result["ways"] if timed["right"] is False]
    there = {result["name"] for result in results}
    late = [
        f"{result['name']} {timed['way']} ({timed['error']})"
        for result in results
        for timed in result["ways"]
        if timed["ms"] is None
    ]
    missing = [name for name in names if name not in there]
    return [
        f"wrong outputs: {', '.join(wrong) or 'none'}",
        f"models that are missing: {', '.join(missing) or 'none'}; ways that are: {', '.join(late) or 'none'}",
    ]


def by_way(result: dict) -> dict[str, dict]:
    return {timed["way"]: timed for timed in result["ways"] if timed["ms"]}


def is_known(result: dict, way: str) -> bool:
    """Whether a way was compiled as it was chosen before. Older tables do not say."""
    return bool(by_way(result).get(way, {}).get("known", False))


def pairs(results: list[dict], one: str, two: str, what: str) -> dict[str, float]:
    """For each model that has both, what one way takes for each unit that the other takes."""
    found = {}
    for result in results:
        ways = by_way(result)
        first, second = (ways.get(way, {}).get(what) for way in (one, two))
        if first and second:
            found[result["name"]] = first / second
    return found


def mean(shares: dict[str, float]) -> float:
    return math.exp(sum(map(math.log, shares.values())) / len(shares))


def most(shares: dict[str, float]) -> str:
    name = max(shares, key=shares.__getitem__)
    return f", geometric mean of {len(shares)} models; at most {shares[name]:.2f} ({name})"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", default="model_table.jsonl")
    parser.add_argument("--show", help="the table of a file that is there")
    parser.add_argument("--library", default="library", help="`{model}` in it is the name of the model")
    parser.add_argument("--trust", default="judged")
    parser.add_argument("--batch", default="1,16")
    parser.add_argument("--ways", default=WAYS)
    parser.add_argument("--choose", action="store_true", help="let `fastest` choose, and note it in the library; time nothing else")
    parser.add_argument("--only", default="", help="some of the models")
    parser.add_argument("--solve", type=float, default=0.0, help="let the solver work so many seconds on each graph")
    parser.add_argument("--seconds", type=float, default=1.0, help="seconds of timing for each way")
    parser.add_argument("--side-by-side", type=int, default=1, metavar="N", help="models that are compiled at a time")
    parser.add_argument("--resting", type=int, default=0, metavar="M", help="models compiled before the first is timed; else N")
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
