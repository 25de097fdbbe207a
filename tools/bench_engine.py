#!/usr/bin/env python3
"""Times the native engine against PyTorch's CPU eager mode, on the same graphs and inputs, with as many threads.

    python tools/bench_engine.py --passnet target/release/passnet GRAPHS...

Each graph is timed in turns (native, PyTorch, native, PyTorch): a busy machine then slows both. The figure of a
graph is the best time of all its runs; both sides keep freed memory for the next run. Inputs come from the same seed.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
import time
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python"))

import torch  # noqa: E402
from passnet.parity.compare_run import (  # noqa: E402
    Options,
    draw_inputs,
    input_elements,
    load_graph,
    spread,
)
from passnet.graphs.shapes import find_graphs  # noqa: E402

HEAVY = ("conv", "linear", "matmul", "bmm", "addmm", "attention", "einsum", "mm(")


@dataclass
class Timed:
    path: str
    native: float
    torch: float
    native_peak: int
    torch_peak: int
    heavy: bool

    @property
    def ratio(self) -> float:
        return self.torch / self.native


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", nargs="+", type=Path, help="graph folders or trees of them")
    parser.add_argument("--passnet", type=Path, required=True, help="the passnet binary, a release build")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--limit", type=int, default=200, help="take this many graphs, spread over all found")
    parser.add_argument("--seconds", type=float, default=0.25, help="time for each turn (default %(default)s)")
    parser.add_argument("--max-elements", type=int, default=50_000_000, help="skip graphs with larger inputs")
    parser.add_argument("--worst", type=int, default=10, help="how many of the slowest to list")
    parser.add_argument("--dtype", choices=["float16", "bfloat16"], help="type of float32 inputs")
    parser.add_argument("--json", type=Path, help="write every graph's figures to this file")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    warnings.simplefilter("ignore")
    folders = [f for f in find_graphs(options.paths) if input_elements(f) <= options.max_elements]
    rows, failed = [], 0
    for number, folder in enumerate(spread(folders, options.limit)):
        try:
            rows.append(time_graph(folder, options))
        except (RuntimeError, OSError, ValueError, KeyError) as error:
            failed += 1
            print(f"{folder}: {str(error)[:200]}", file=sys.stderr)
        if number % 20 == 19:
            print(f"{number + 1} graphs, {mean(row.ratio for row in rows):.2f}x so far", file=sys.stderr)
    if not rows:
        print("error: no graph could be timed", file=sys.stderr)
        return 2
    report(rows, failed, options.worst)
    if options.json is not None:
        options.json.write_text(json.dumps([vars(row) for row in rows]))
    return 0


def time_graph(folder: Path, options: argparse.Namespace) -> Timed:
    source = (folder / "model.py").read_text(encoding="utf-8")
    settings = Options(dtype=options.dtype)
    inputs = draw_inputs(folder, source, settings)
    forward = load_graph(source)
    native, native_peak, best = math.inf, 0, math.inf
    with torch.inference_mode():
        for _ in range(2):
            timing = run_native(folder, options)
            native, native_peak = min(native, timing["best"]), timing["peak_bytes"]
            best = min(best, run_torch(forward, inputs, settings.seed, options.seconds))
        peak = torch_peak(forward, inputs)
    heavy = any(word in source for word in HEAVY)
    return Timed(str(folder), native, best, native_peak, peak, heavy)


def run_native(folder: Path, options: argparse.Namespace) -> dict[str, Any]:
    command = [str(options.passnet), "graph", "run", "--json", "--time", str(options.seconds), str(folder)]
    if options.dtype is not None:
        command += ["--dtype", options.dtype]
    environment = {**os.environ, "RAYON_NUM_THREADS": str(options.threads)}
    ran = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    record = json.loads(ran.stdout or "{}")
    if not record.get("ok"):
        raise RuntimeError(f"not run: {record.get('error', ran.stderr[-200:])}")
    timing: dict[str, Any] = record["timing"]
    return timing


def run_torch(forward: Any, inputs: dict[str, Any], seed: int, seconds: float) -> float:
    """The best time in milliseconds."""
    torch.manual_seed(seed)
    forward(**inputs)
    best, begin = math.inf, time.perf_counter()
    while best == math.inf or time.perf_counter() - begin < seconds:
        start = time.perf_counter()
        outputs = forward(**inputs)
        best = min(best, time.perf_counter() - start)
        del outputs
    return best * 1e3


def torch_peak(forward: Any, inputs: dict[str, Any]) -> int:
    """The most bytes PyTorch's allocator held at one time during a run, beside the inputs."""
    with torch.profiler.profile(profile_memory=True) as profile:
        outputs = forward(**inputs)
    del outputs
    held = peak = 0
    events = [e for e in profile.profiler.kineto_results.events() if e.name() == "[memory]"]
    for event in sorted(events, key=lambda event: event.start_ns()):
        held += event.nbytes()
        peak = max(peak, held)
    return peak


def mean(ratios: Iterable[float]) -> float:
    """The geometric mean."""
    logs = [math.log(ratio) for ratio in ratios]
    return math.exp(sum(logs) / len(logs)) if logs else math.nan


def report(rows: Sequence[Timed], failed: int, worst: int) -> None:
    print(f"{len(rows)} graphs timed, {failed} not; ratio = PyTorch's time / native time")
    for name, chosen in (
        ("all", rows),
        ("with a product or convolution", [r for r in rows if r.heavy]),
        ("without", [r for r in rows if not r.heavy]),
    ):
        if chosen:
            faster = sum(row.ratio >= 1.0 for row in chosen)
            print(f"  {name:30} {len(chosen):5}  geometric mean {mean(r.ratio for r in chosen):.2f}x, {faster} as fast or faster")
    above = [row for row in rows if row.native_peak > row.torch_peak]
    total = sum(row.native_peak for row in rows), sum(row.torch_peak for row in rows)
    print(f"peak memory beside the inputs: native {total[0] / 2**20:.1f} MiB, PyTorch {total[1] / 2**20:.1f} MiB in sum; above PyTorch's on {len(above)}")
    print("the slowest:")
    for row in sorted(rows, key=lambda row: row.ratio)[:worst]:
        print(f"  {row.ratio:6.2f}x  native {row.native:9.3f} ms  PyTorch {row.torch:9.3f} ms  {row.path}")


if __name__ == "__main__":
    sys.exit(main())
