"""TorchInductor's profile of a benchmark set: how it does against eager in three modes, in as much time as there is.

    python tools/inductor_profile.py --passnet target/release/passnet bench/set/evaluation.pnds profile/ --minutes 25

unpacks the set below `profile/`, judges one part of its tasks after the other in each mode, and writes `profile/profile.json`: what
it was measured with, sums for each mode and kind of task, and the speed-up of every graph. The same command goes on where it was
stopped. Parts are drawn by the names of tasks, which are digests: whatever is done when time is up is a fair draw, and only parts that
every mode has are summed up. `--graphs 2` judges of each task the graph with the largest inputs and one drawn by digest; `--jobs 8` has
eight processes compile a part before one of them judges it, and TorchInductor's cache keep the kernels.
"""

import argparse
import hashlib
import json
import math
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from draw_tasks import mib_of_inputs

MODES = ("default", "reduce-overhead", "max-autotune")
# Seconds of timing for a graph that is compiled and not judged.
COMPILING = "0.001"
KINDS = ("fusible", "typical", "sole_op")
# Judged slower or faster than eager by less than this is a tie.
TIE = 0.05
# A run that is stopped may finish what it is writing.
GRACE = 20.0


def measure(given: argparse.Namespace) -> int:
    """How many of the parts every mode has."""
    until = time.monotonic() + 60 * given.minutes
    tasks = given.out / "tasks"
    if not tasks.exists():
        partial = given.out / "tasks.partial"
        subprocess.run(["rm", "-rf", str(partial)], check=True)
        kinds = ["--kind", given.kinds] if given.kinds else []
        subprocess.run([given.passnet, "dataset", "export", str(given.set), "--out", str(partial), *kinds], check=True)
        if given.graphs:
            for path in partial.glob("samples/**/graph_list.txt"):
                keep_some(path, given.graphs)
        partial.rename(tasks)
    for part in range(given.parts):
        for mode in given.modes:
            if not judged(given, tasks, mode, part, until):
                return part
    return given.parts


def keep_some(path: Path, count: int) -> None:
    """Leaves in a task's list the graph with the largest inputs, and as many drawn by digest as there may be beside it."""
    drawn = lambda graph: hashlib.sha256((path.parent.name + graph).encode()).hexdigest()  # noqa: E731
    graphs = sorted(path.read_text().split(), key=drawn)
    largest = max(graphs, key=lambda graph: (mib_of_inputs(path.parent / graph), graph), default=None)
    kept = sorted(graphs, key=lambda graph: graph != largest)[:count]
    path.write_text("".join(f"{graph}\n" for graph in kept))


def judged(given: argparse.Namespace, tasks: Path, mode: str, part: int, until: float) -> bool:
    """Whether one mode has judged all of a part in time."""
    run = given.out / mode / str(part)
    done = run.with_suffix(".done")
    if done.exists():
        return True
    left = until - time.monotonic()
    if left <= 0:
        return False
    run.parent.mkdir(parents=True, exist_ok=True)
    command = [given.passnet, "bench", str(tasks / "samples"), "--compiler", "inductor", "--mode", mode]
    command += ["--engine", "torch", "--device", given.device, "--quick"]
    if given.jobs > 1:
        # A part of a part: every `parts`-th of as many parts as there are jobs for each.
        shards = [f"{part + given.parts * job}/{given.parts * given.jobs}" for job in range(given.jobs)]
        with tempfile.TemporaryDirectory() as aside:
            commands = [[*command, "--seconds", COMPILING, "--shard", shard, "--out", f"{aside}/{job}"] for job, shard in enumerate(shards)]
            if finished(given, commands, until) is None:
                return False
    codes = finished(given, [[*command, "--seconds", str(given.seconds), "--shard", f"{part}/{given.parts}", "--out", str(run)]], until)
    if codes is None:
        return False
    (code,) = codes
    # 1: some graph is wrong, which is a result; 3 and others: something kept graphs from being judged.
    if code not in (0, 1):
        print(f"{run}: exit code {code}, see {given.out / 'log.txt'}", file=sys.stderr)
        return False
    done.touch()
    return True


def finished(given: argparse.Namespace, commands: list[list[str]], until: float) -> list[int] | None:
    """The exit codes of commands that run beside each other; `None` if time is up first."""
    with (given.out / "log.txt").open("a") as log:
        running = [subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True) for command in commands]
        try:
            return [one.wait(max(0.0, until - time.monotonic())) for one in running]
        except subprocess.TimeoutExpired:
            for one in running:
                stop(one)
            return None


def stop(running: subprocess.Popen) -> None:
    """Results are written one by one, so that nothing but the graph under way is lost."""
    for name in (signal.SIGINT, signal.SIGKILL):
        try:
            os.killpg(running.pid, name)
            running.wait(GRACE)
            return
        except (subprocess.TimeoutExpired, ProcessLookupError):
            continue


def results(folder: Path, parts: int) -> tuple[dict, dict[str, dict]]:
    """What a mode was measured with, and the last result of every graph by task and name."""
    identity, found = {}, {}
    for part in range(parts):
        for line in (folder / str(part) / "events.jsonl").read_text().splitlines():
            event = json.loads(line)
            if event.get("event") == "start":
                identity = {"identity": event["identity"], "machine": event["machine"], "options": event["options"]}
            elif event.get("event") == "graph":
                found[f"{event['sample']}/{event['graph'].removeprefix('graphs/')}"] = event
    return identity, found


def kinds_of(tasks: Path) -> dict[str, str]:
    """The kind of every task of an export, by its name."""
    lists = {kind: tasks / "sample_lists" / f"{kind}_eval.txt" for kind in KINDS}
    return {Path(line).name: kind for kind, path in lists.items() if path.exists() for line in path.read_text().split()}


def summary(events: list[dict]) -> dict:
    speedups = [event["speedup"] for event in events if event["verdict"] == "correct" and event.get("speedup")]
    return {
        "graphs": len(events),
        "correct": sum(event["verdict"] == "correct" for event in events),
        "timed": len(speedups),
        "geometric_mean": math.exp(sum(map(math.log, speedups)) / len(speedups)) if speedups else None,
        "slower": sum(speedup < 1 - TIE for speedup in speedups),
        "faster": sum(speedup > 1 + TIE for speedup in speedups),
    }


def profile(given: argparse.Namespace, parts: int) -> dict:
    """What `profile.json` holds."""
    kinds = kinds_of(given.out / "tasks")
    told: dict = {"set": given.set.name, "parts": [parts, given.parts], "modes": {}, "speedups": {}}
    for mode in given.modes:
        told["measured_with"], found = results(given.out / mode, parts)
        by_kind = {kind: [event for event in found.values() if kinds.get(event["sample"]) == kind] for kind in KINDS}
        told["modes"][mode] = {"all": summary(list(found.values())), **{kind: summary(of) for kind, of in by_kind.items()}}
        for name, event in found.items():
            speedup = event.get("speedup") if event["verdict"] == "correct" else None
            told["speedups"].setdefault(name, {})[mode] = None if speedup is None else round(speedup, 4)
    return told


def show(told: dict) -> None:
    print(f"{told['parts'][0]} of {told['parts'][1]} parts; slower and faster by more than {TIE:.0%}\n")
    print("| mode | kind | graphs | correct | of eager | slower | faster |\n|---|---|---|---|---|---|---|")
    for mode, kinds in told["modes"].items():
        for kind, one in kinds.items():
            if one["timed"]:
                share = [f"{one[side] / one['timed']:.0%}" for side in ("slower", "faster")]
                print(f"| {mode} | {kind} | {one['graphs']} | {one['correct']} | {one['geometric_mean']:.2f}x | {share[0]} | {share[1]} |")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("set", type=Path, help="a benchmark set, as `passnet dataset benchmark` writes it")
    parser.add_argument("out", type=Path, help="a folder for the unpacked set, the runs and profile.json")
    parser.add_argument("--passnet", default="passnet")
    parser.add_argument("--modes", type=lambda text: text.split(","), default=list(MODES), help=f"default: {','.join(MODES)}")
    parser.add_argument("--minutes", type=float, default=25.0, help="of this call; the next one goes on")
    parser.add_argument("--parts", type=int, default=20, help="the same number each time")
    parser.add_argument("--kinds", help="fusible, typical, sole-op, with commas between; the same each time (default: all)")
    parser.add_argument("--graphs", type=int, help="of a task, at most; the same number each time (default: all)")
    parser.add_argument("--jobs", type=int, default=1, help="processes that compile a part before it is judged")
    parser.add_argument("--seconds", type=float, default=0.1, help="of timing for one graph")
    parser.add_argument("--device", default="cuda")
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    parts = measure(given)
    if not parts:
        print("no part was judged in every mode: give it more minutes, or more parts", file=sys.stderr)
        return 1
    told = profile(given, parts)
    (given.out / "profile.json").write_text(json.dumps(told, indent=1, sort_keys=True) + "\n")
    show(told)
    return 0 if parts == given.parts else 3


if __name__ == "__main__":
    sys.exit(main())
