#!/usr/bin/env python3
"""How long a GPU takes for passes of the solver as they are, with other tiles and warps, and for TorchInductor's kernels.

    passnet solve TASKS --no-tune --no-bench --target h200 --out solved
    python tools/tile_sweep.py measure --passnet target/release/passnet --passes solved/passes --out sweep.jsonl TASKS --jobs 14
    python tools/tile_sweep.py show sweep.jsonl

Rules for tiles (`passnet-solver/src/emit/choice.rs`) come from such sweeps. A change is two powers of two, of tiles and of warps: `-1,0`
has half the tile and as many warps. It is written into the text of the wrapper, and Triton compiles it in a process of its own; while one
of the processes holds the GPU and its clock, the others compile. Each graph is timed twice, so that noise shows. Products are in full
float32, as `passnet bench` has them.

`show` also tells apart graphs without a product, with one, and with a convolution, whose bias TorchInductor takes out of its call.

Files of passes are imported and graphs run as Python, which `passnet` itself never does: name only passes that the solver or you have
written, and tasks that you would run.
"""

import argparse
import fcntl
import hashlib
import importlib.util
import json
import math
import re
import statistics
import subprocess
import sys
import tempfile
import types
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
AS_IT_IS = (0, 0)
CHANGES = (AS_IT_IS, (1, 0), (-1, 0), (0, 1), (0, -1), (1, 1), (-1, -1), (2, 1), (-2, -2))
USUAL_WARPS, MOST_WARPS, LEAST_TILE = 4, 32, 32
# Until all launches of a call are queued, and calls that are timed.
SLEEP_CYCLES = 1_500_000
CALLS = 11

# What a graph has, the first that fits. A library computes products in all ways; of a convolution TorchInductor takes the bias out.
KINDS = (
    ("a convolution with bias", re.compile(r"\.conv(?:_transpose)?[123]d\(\w+, \w+, (?!None)\w")),
    ("a convolution", re.compile(r"\.conv(?:_transpose)?[123]d\(")),
    ("a product", re.compile(r"linear\(|matmul\(|addmm\(|bmm\(|einsum\(|_attention\(| @ ")),
    ("no product", re.compile("")),
)
# Where a wrapper says how large tiles are: the number is the last group.
TILES = [
    re.compile(r"(height\w* = min\(.*max\(1, )(\d+)(?= // width)"),
    re.compile(r"(height\w* = min\(triton\.next_power_of_2\([^()]*\), )(\d+)(?=\)$)", re.MULTILINE),
    re.compile(r"(width\w* = min\(width\w*, triton\.next_power_of_2\([^()]*\), )(\d+)"),
    re.compile(r"(width\w* = max\(\d+, )(\d+)(?= // triton)"),
    re.compile(r"(block\w* = min\(triton\.next_power_of_2\(.*\), )(\d+)(?=\))"),
    re.compile(r"(tile\w* = )(\d+)(?= if is_small)"),
    re.compile(r"(tile\w* = \d+ if is_small\w* else )(\d+)"),
]
LAUNCH = re.compile(r"^    \w+\[\((?:.|\n)*?\]\((?:[^\n]*\)$|\n(?:        [^\n]*\n)+    \)$)", re.MULTILINE)


def changed(text: str, change: tuple[int, int]) -> str:
    """A file of the solver's with other tiles and warps."""
    tile, warps = change
    if tile:
        scaled = lambda found: f"{found[1]}{max(LEAST_TILE, int(int(found[2]) * 2.0**tile))}"  # noqa: E731
        for pattern in TILES:
            text = pattern.sub(scaled, text)
    return LAUNCH.sub(lambda launch: with_warps(launch[0], warps), text) if warps else text


def with_warps(launch: str, power: int) -> str:
    def scaled(number: str) -> int:
        return min(MOST_WARPS, max(1, int(int(number) * 2.0**power)))

    if "num_warps=" in launch:
        # First the warps of large graphs, whose pattern holds those of small ones.
        for pattern in (r"(num_warps=\d+ if is_small\w* else )(\d+)", r"(num_warps=)(\d+)"):
            launch = re.sub(pattern, lambda found: f"{found[1]}{scaled(found[2])}", launch, count=1)
        return launch
    inside = launch.rstrip()[:-1].rstrip().rstrip(",")
    return f"{inside}, num_warps={scaled(str(USUAL_WARPS))})"


def functions(passes: Path, change: tuple[int, int], place: Path) -> tuple[dict[str, Any], str]:
    """What the rewritten graph of a task calls, and a digest of its text."""
    found: dict[str, Any] = {}
    package = types.ModuleType("pass_dir")
    package.__path__ = []
    sys.modules["pass_dir"] = package
    texts = []
    # Passes import what they share.
    for path in sorted(passes.glob("*.py"), key=lambda path: (path.name != "kernels.py", path.name)):
        text = changed(path.read_text(), change)
        texts.append(text)
        # Triton finds its functions' text in files.
        own = place / hashlib.sha256(text.encode()).hexdigest()[:16] / path.name
        own.parent.mkdir(parents=True, exist_ok=True)
        own.write_text(text)
        spec = importlib.util.spec_from_file_location(f"pass_dir.{path.stem}", own)
        module = importlib.util.module_from_spec(spec)
        sys.modules[f"pass_dir.{path.stem}"] = module
        spec.loader.exec_module(module)
        left_out = ("pattern", "replacement_args", "replacement_func")
        found |= {name: value for name, value in vars(module).items() if callable(value) and name not in left_out}
    return found, hashlib.sha256("".join(texts).encode()).hexdigest()


def forward_of(text: str, scope: dict[str, Any]) -> Callable[..., Any]:
    import torch

    names = {**scope, "torch": torch, "device": torch.device, "inf": math.inf, "nan": math.nan, "math": math}
    exec(compile(text, "<graph>", "exec"), names)
    return names["GraphModule"]().forward


class Clock:
    """The GPU's own time for what a call launches; one process at a time."""

    def __init__(self, lock: Path) -> None:
        self.lock = lock.open("w")

    @contextmanager
    def held(self) -> Iterator[None]:
        fcntl.flock(self.lock, fcntl.LOCK_EX)
        try:
            yield
        finally:
            fcntl.flock(self.lock, fcntl.LOCK_UN)

    def microseconds(self, call: Callable[..., Any], inputs: list[Any]) -> float:
        import torch

        times = []
        for _ in range(CALLS):
            own = copies(inputs)
            torch.cuda.synchronize()
            torch.cuda._sleep(SLEEP_CYCLES)
            events = [torch.cuda.Event(enable_timing=True) for _ in range(2)]
            events[0].record()
            call(*own)
            events[1].record()
            torch.cuda.synchronize()
            times.append(events[0].elapsed_time(events[1]) * 1e3)
        return round(statistics.median(times), 2)


def copies(inputs: list[Any]) -> list[Any]:
    return [value.clone() for value in inputs]


def measured(given: argparse.Namespace, name: str, graph: Path, place: Path, clock: Clock) -> dict[str, Any]:
    import torch
    from passnet.graphs.replay import read_metas, replay_metas

    rewritten = subprocess.run(
        [given.passnet, "pass", "apply", given.passes / name, "--in", graph], capture_output=True, text=True, check=False
    )
    if rewritten.returncode:
        return {"failed": "no pass applies"}
    text = (graph / "model.py").read_text()
    original = forward_of(text, {})
    metas = [meta for file in ("weight_meta.py", "input_meta.py") for meta in read_metas(graph / file)]
    values = replay_metas(sorted(metas, key=lambda meta: meta.class_name))
    code = original.__code__
    with clock.held():
        inputs = [values[argument].cuda() for argument in code.co_varnames[1 : code.co_argcount]]
    calls, known = {}, set()
    for change in CHANGES:
        scope, digest = functions(given.passes / name, change, place)
        if digest not in known:
            known.add(digest)
            call = forward_of(rewritten.stdout, scope)
            call(*copies(inputs))
            calls["{},{}".format(*change)] = call
    compiled = torch.compile(original.__self__, backend="inductor")
    compiled(*copies(inputs))
    with clock.held():
        rounds = [{change: clock.microseconds(call, inputs) for change, call in calls.items()} for _ in range(2)]
        theirs = clock.microseconds(compiled, inputs)
    torch._dynamo.reset()
    kind = next(kind for kind, pattern in KINDS if pattern.search(text))
    return {"kind": kind, "microseconds": rounds, "inductor": theirs}


def work(given: argparse.Namespace) -> None:
    """One of the processes."""
    import torch

    warnings.filterwarnings("ignore")
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    sys.path.insert(0, str(ROOT / "python"))
    clock = Clock(given.out.with_suffix(".lock"))
    graphs = [(task.resolve(), graph) for task in given.tasks for graph in (task / "graph_list.txt").read_text().split()]
    first, step = map(int, given.part.split("/"))
    with tempfile.TemporaryDirectory() as place, torch.no_grad():
        for task, graph in graphs[first::step]:
            try:
                found = measured(given, task.name, task / graph, Path(place), clock)
            except Exception as error:  # noqa: BLE001 (one graph of many)
                found = {"failed": f"{type(error).__name__}: {str(error).splitlines()[0]}"}
            with clock.held(), given.out.open("a") as file:
                file.write(json.dumps({"task": task.name, "graph": graph, **found}) + "\n")


def measure(given: argparse.Namespace) -> int:
    if given.part:
        work(given)
        return 0
    if given.out.exists():
        print(f"{given.out} is there already: name another file", file=sys.stderr)
        return 2
    parts = [[sys.executable, *sys.argv, "--part", f"{job}/{given.jobs}"] for job in range(given.jobs)]
    running = [subprocess.Popen(part) for part in parts]
    return max(one.wait() for one in running)


def mean(values: list[float]) -> float:
    return math.exp(statistics.fmean(map(math.log, values))) if values else math.nan


def show(given: argparse.Namespace) -> int:
    lines = [json.loads(line) for line in given.sweep.read_text().splitlines()]
    timed = [line for line in lines if "failed" not in line]
    own = "{},{}".format(*AS_IT_IS)
    both = lambda line, change: statistics.fmean(times[change] for times in line["microseconds"])  # noqa: E731
    print(f"{len(timed)} of {len(lines)} graphs; the GPU's time, geometric means\n\n| tiles, warps | graphs | of the time as it is | of TorchInductor's |")
    print("|---|---|---|---|")
    for change in ("{},{}".format(*change) for change in CHANGES):
        of = [line for line in timed if change in line["microseconds"][0]]
        against = [mean([both(line, change) / both(line, own) for line in of]), mean([both(line, change) / line["inductor"] for line in of])]
        print(f"| {change} | {len(of)} | {against[0]:.3f} | {against[1]:.3f} |")
    # Chosen by the first time, told by the second: the least of several times is less by noise alone.
    chosen = [(min(line["microseconds"][0], key=line["microseconds"][0].get), line) for line in timed]
    best = mean([line["microseconds"][1][change] / line["microseconds"][1][own] for change, line in chosen])
    print(f"| the best for each graph | {len(chosen)} | {best:.3f} | |")
    print("\n| graphs with | graphs | of TorchInductor's time, as they are |\n|---|---|---|")
    for kind, _ in KINDS:
        of = [both(line, own) / line["inductor"] for line in timed if line["kind"] == kind]
        if of:
            print(f"| {kind} | {len(of)} | {mean(of):.3f} |")
    return 0 if timed else 1


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    does = parser.add_subparsers(required=True)
    measuring = does.add_parser("measure", help="on a machine with a GPU")
    measuring.add_argument("tasks", nargs="+", type=Path, help="folders of tasks")
    measuring.add_argument("--passes", type=Path, required=True, help="a folder with a folder of passes for each task, by its name")
    measuring.add_argument("--out", type=Path, required=True, help="a file, a line for each graph")
    measuring.add_argument("--passnet", default=str(ROOT / "target/release/passnet"))
    measuring.add_argument("--jobs", type=int, default=8)
    measuring.add_argument("--part", help=argparse.SUPPRESS)
    measuring.set_defaults(do=measure)
    showing = does.add_parser("show", help="means over all graphs of a sweep")
    showing.add_argument("sweep", type=Path)
    showing.set_defaults(do=show)
    given = parser.parse_args()
    return given.do(given)


if __name__ == "__main__":
    sys.exit(main())
