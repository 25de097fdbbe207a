"""Does `@triton.autotune` choose well? Tuned passes against the same passes with each configuration by hand.

    python tools/check_autotune.py --passnet target/release/passnet bench/tasks bench/passes --kernels 10 \
        --engine torch --device cuda

Of every pass that launches one kernel without saying `num_warps` several are made: one that is tuned over numbers of warps,
and one for each number. Each becomes a sample of its own, twice, in opposite orders, and one run of `passnet bench` evaluates
all of them; times are the device's with a cold cache where the engine can tell, as tuning takes them, else those of calls.
Prints, for each task, the tuned pass's time as a ratio of the best by hand, geometric means over its graphs, each the shorter
of the two; the exit code is 1 where a ratio is above the limit. `--warm N` first evaluates everything in N processes and
forgets what it found, so that kernels are compiled when times are taken. `--out DIR` keeps the run: what a run that was
stopped has measured is told by `--tell DIR`. Further options go to `passnet bench` as they are.
"""

from __future__ import annotations

import argparse
import json
import math
import re
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import geometric_mean, median

WARPS = (1, 2, 4, 8, 16)
NAMES = ("tuned", *(f"warps{warps}" for warps in WARPS))
# Between the task, the variant and the round in a sample's name.
MARK = "--"
LAUNCH = re.compile(r"\w+_kernel\[")
TUNED = "@triton.autotune(configs=[{}], key=[])\n@triton.jit"


def closing(text: str, opening: int) -> int:
    """Where the bracket that opens there is closed."""
    depth = 0
    for at in range(opening, len(text)):
        depth += (text[at] in "([{") - (text[at] in ")]}")
        if depth == 0:
            return at
    raise ValueError("a bracket stays open")


def with_warps(text: str, warps: int) -> str:
    """The only launch with a number of warps."""
    grid = LAUNCH.search(text).end() - 1
    end = closing(text, closing(text, grid) + 1)
    arguments = text[:end].rstrip().removesuffix(",")
    return f"{arguments}, num_warps={warps}{text[end:]}"


def variants(text: str) -> dict[str, str] | None:
    """The file tuned, and with each number of warps; nothing where it has not exactly one plain launch of one kernel."""
    if text.count("@triton.jit") != 1 or len(LAUNCH.findall(text)) != 1 or "num_warps" in text:
        return None
    configs = ", ".join(f"triton.Config({{}}, num_warps={warps})" for warps in WARPS)
    made = {"tuned": text.replace("@triton.jit", TUNED.format(configs))}
    for warps in WARPS:
        made[f"warps{warps}"] = with_warps(text, warps)
    return made


def write_samples(tasks: Path, passes: Path, kernels: int, most_graphs: int, folder: Path) -> list[Path]:
    """A sample for each task, variant and round, in the order in which they are to be evaluated."""
    samples: list[Path] = []
    chosen = 0
    for task in sorted(path for path in tasks.iterdir() if (path / "graph_list.txt").exists()):
        files = sorted((passes / task.name).glob("*.py"))
        made = variants(files[0].read_text()) if len(files) == 1 else None
        if made is None:
            continue
        graphs = (task / "graph_list.txt").read_text().split()[:most_graphs]
        for round, names in enumerate((NAMES, NAMES[::-1])):
            for name in names:
                sample = folder / f"{task.name}{MARK}{name}{MARK}{round}"
                for graph in graphs:
                    shutil.copytree(task / graph, sample / graph)
                (sample / "graph_list.txt").write_text("".join(f"{graph}\n" for graph in graphs))
                shutil.copytree(passes / task.name, sample / "pass_dir")
                (sample / "pass_dir" / files[0].name).write_text(made[name])
                samples.append(sample)
        chosen += 1
        if chosen == kernels:
            break
    return samples


def milliseconds(event: dict) -> float:
    costs = event.get("candidate_costs", {})
    return costs.get("cold_ms") or median(event["candidate_ms"])


def bench(passnet: str, samples: list[Path], others: list[str]) -> list[str]:
    return [passnet, "bench", *map(str, samples), *others]


def read(out: Path) -> dict[str, dict[str, dict[str, dict]]]:
    """By task, variant and graph: the shorter of the rounds, as far as there are correct ones. A device that slows down
    meanwhile slows nobody alone."""
    found: dict[str, dict[str, dict[str, dict]]] = {}
    for line in (out / "events.jsonl").read_text().splitlines():
        event = json.loads(line)
        if event["event"] != "graph" or event["verdict"] != "correct":
            continue
        task, name, _ = event["sample"].rsplit("/", 1)[-1].split(MARK)
        graphs = found.setdefault(task, {}).setdefault(name, {})
        known = graphs.get(event["graph"], event)
        graphs[event["graph"]] = min(known, event, key=milliseconds)
    return found


def warm(passnet: str, samples: list[Path], processes: int, others: list[str]) -> None:
    """Fills the compiler's cache; what is wrong will be seen later."""
    commands = [bench(passnet, samples[at::processes], ["--seconds", "0.01", *others]) for at in range(processes)]
    with ThreadPoolExecutor(processes) as pool:
        list(pool.map(lambda command: subprocess.run(command, capture_output=True), commands))


def tell(out: Path, limit: float) -> int:
    worst = 0.0
    found = read(out)
    for task, variants in found.items():
        graphs = [graph for graph in variants.get("tuned", {}) if all(graph in variants.get(name, {}) for name in NAMES)]
        if not graphs:
            print(f"{task:28} no graph is correct with all configurations")
            worst = math.inf
            continue
        times = {name: geometric_mean([milliseconds(variants[name][graph]) for graph in graphs]) for name in NAMES}
        best = min(NAMES[1:], key=lambda name: times[name])
        slowest = max(NAMES[1:], key=lambda name: times[name])
        ratio = times["tuned"] / times[best]
        worst = max(worst, ratio)
        tuned = [choice for graph in graphs for choice in variants["tuned"][graph]["tuned"]]
        taken = sorted({choice["candidates"][choice["chosen"]]["config"] for choice in tuned})
        print(
            f"{task:28} tuned {times['tuned'] * 1e3:8.2f} µs ({'; '.join(taken)})  best {times[best] * 1e3:8.2f} ({best})"
            f"  slowest {times[slowest] * 1e3:8.2f} ({slowest})  ratio {ratio:.3f}"
        )
    print(f"{len(found)} kernels, worst ratio {worst:.3f}")
    return 0 if found and worst <= limit else 1


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--passnet", help="the program")
    parser.add_argument("--kernels", type=int, default=10, help="tasks to try")
    parser.add_argument("--graphs", type=int, default=2, help="graphs of each")
    parser.add_argument("--limit", type=float, default=1.05, help="the largest ratio that is good")
    parser.add_argument("--warm", type=int, default=0, metavar="N", help="processes that compile all kernels before")
    parser.add_argument("--out", type=Path, help="keep the run in this folder")
    parser.add_argument("--tell", type=Path, metavar="DIR", help="tell what a run has measured; runs nothing")
    parser.add_argument("tasks", type=Path, nargs="?")
    parser.add_argument("passes", type=Path, nargs="?")
    options, others = parser.parse_known_args()
    if options.tell:
        sys.exit(tell(options.tell, options.limit))
    if not options.passnet or not options.tasks or not options.passes:
        parser.error("needs --passnet, a folder of tasks and a folder of passes")
    with tempfile.TemporaryDirectory() as place:
        samples = write_samples(options.tasks, options.passes, options.kernels, options.graphs, Path(place) / "samples")
        if options.warm:
            # Both rounds have the same kernels.
            warm(options.passnet, [path for path in samples if path.name.endswith("0")], options.warm, others)
        out = options.out or Path(place) / "out"
        done = subprocess.run(bench(options.passnet, samples, ["--out", str(out), *others]), stdout=subprocess.DEVNULL)
        if done.returncode not in (0, 1):
            sys.exit(f"passnet bench: exit code {done.returncode}")
        sys.exit(tell(out, options.limit))


if __name__ == "__main__":
    main()
