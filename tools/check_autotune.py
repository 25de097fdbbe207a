"""Does `@triton.autotune` choose well? Tuned passes against the same passes with each configuration by hand.

    python tools/check_autotune.py --passnet target/release/passnet bench/tasks bench/passes --kernels 10 \
        --engine torch --device cuda

Of every pass that launches one kernel without saying `num_warps` several are made: one that is tuned over numbers of warps,
and one for each number. All are evaluated; times are the device's with a cold cache where the engine can tell, as tuning takes
them, else those of calls. Prints, for each task, the tuned pass's time as a ratio of the best by hand, geometric means over
its graphs, each the shorter of two rounds in opposite orders; the exit code is 1 where a ratio is above the limit. `--warm N`
first evaluates everything in N processes at a time and forgets what it found, so that kernels are compiled when times are
taken. Further options go to `passnet bench` as they are.
"""

from __future__ import annotations

import argparse
import json
import math
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import geometric_mean, median

WARPS = (1, 2, 4, 8, 16)
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


def write_variants(tasks: Path, passes: Path, kernels: int, folder: Path) -> list[str]:
    """Writes a folder of passes for each variant; gives the tasks that have one."""
    chosen: list[str] = []
    for task in sorted(path.name for path in tasks.iterdir() if (path / "graph_list.txt").exists()):
        files = sorted((passes / task).glob("*.py"))
        made = variants(files[0].read_text()) if len(files) == 1 else None
        if made is None:
            continue
        for name, text in made.items():
            target = folder / name / task
            target.mkdir(parents=True)
            (target / files[0].name).write_text(text)
            for other in (passes / task).glob("*.json"):
                (target / other.name).write_bytes(other.read_bytes())
        chosen.append(task)
        if len(chosen) == kernels:
            break
    return chosen


def milliseconds(event: dict) -> float:
    costs = event.get("candidate_costs", {})
    return costs.get("cold_ms") or median(event["candidate_ms"])


def evaluate(passnet: str, tasks: Path, chosen: list[str], passes: Path, others: list[str]) -> dict[tuple[str, str], dict]:
    with tempfile.TemporaryDirectory() as out:
        command = [passnet, "bench", *(str(tasks / task) for task in chosen), "--passes", str(passes), "--out", out]
        done = subprocess.run([*command, *others], capture_output=True, text=True)
        if done.returncode not in (0, 1):
            sys.exit(f"{' '.join(command)}: exit code {done.returncode}\n{done.stderr}")
        events = [json.loads(line) for line in (Path(out) / "events.jsonl").read_text().splitlines()]
    graphs = [event for event in events if event["event"] == "graph"]
    return {(event["sample"], event["graph"]): event for event in graphs if event["verdict"] == "correct"}


def fastest(rounds: Iterable[dict[str, dict]]) -> dict[str, dict]:
    """Of each variant and graph the round with the shorter time: a device that slows down meanwhile slows nobody alone."""
    found: dict[str, dict] = {}
    for round in rounds:
        for name, graphs in round.items():
            known = found.setdefault(name, {})
            for key, event in graphs.items():
                known[key] = min(known.get(key, event), event, key=milliseconds)
    return found


def warm(passnet: str, tasks: Path, chosen: list[str], folders: list[Path], processes: int, others: list[str]) -> None:
    """Fills the compiler's cache; what is wrong will be seen later."""
    commands = [
        [passnet, "bench", str(tasks / task), "--passes", str(folder), "--seconds", "0.01", *others]
        for task in chosen
        for folder in folders
    ]
    with ThreadPoolExecutor(processes) as pool:
        list(pool.map(lambda command: subprocess.run(command, capture_output=True), commands))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--passnet", required=True, help="the program")
    parser.add_argument("--kernels", type=int, default=10, help="tasks to try")
    parser.add_argument("--limit", type=float, default=1.05, help="the largest ratio that is good")
    parser.add_argument("--warm", type=int, default=0, metavar="N", help="processes that compile all kernels before")
    parser.add_argument("tasks", type=Path)
    parser.add_argument("passes", type=Path)
    options, others = parser.parse_known_args()
    with tempfile.TemporaryDirectory() as folder:
        chosen = write_variants(options.tasks, options.passes, options.kernels, Path(folder))
        names = ["tuned", *(f"warps{warps}" for warps in WARPS)]
        if options.warm:
            warm(options.passnet, options.tasks, chosen, [Path(folder) / name for name in names], options.warm, others)
        found = fastest(
            {name: evaluate(options.passnet, options.tasks, chosen, Path(folder) / name, others) for name in order}
            for order in (names, names[::-1])
        )
    worst = 0.0
    for task in chosen:
        graphs = [key for key in found["tuned"] if key[0] == task and all(key in found[name] for name in names)]
        if not graphs:
            print(f"{task:28} no graph is correct with all configurations")
            worst = math.inf
            continue
        times = {name: geometric_mean([milliseconds(found[name][key]) for key in graphs]) for name in names}
        best = min(names[1:], key=lambda name: times[name])
        slowest = max(names[1:], key=lambda name: times[name])
        ratio = times["tuned"] / times[best]
        worst = max(worst, ratio)
        taken = {tuned["candidates"][tuned["chosen"]]["config"] for key in graphs for tuned in found["tuned"][key]["tuned"]}
        print(
            f"{task:28} tuned {times['tuned'] * 1e3:8.2f} µs ({'; '.join(sorted(taken))})  best {times[best] * 1e3:8.2f} ({best})"
            f"  slowest {times[slowest] * 1e3:8.2f} ({slowest})  ratio {ratio:.3f}"
        )
    print(f"{len(chosen)} kernels, worst ratio {worst:.3f}")
    sys.exit(0 if worst <= options.limit else 1)


if __name__ == "__main__":
    main()
