"""A cluster of three Ray nodes on this machine: the same results as one process, whoever dies meanwhile.

    PASSNET_PYTHON=… ray_python tools/check_cluster.py target/debug/passnet            minutes; tools/full-check runs it
    PASSNET_PYTHON=… ray_python tools/check_cluster.py target/debug/passnet --large    the sizes of docs/cluster.md

Needs a Python with Ray, and `unshare`: all of it happens in a network namespace with nothing but loopback, because Ray
otherwise takes the machine's own address. Extraction needs PyTorch in PASSNET_PYTHON and is left out without. The last
line counts; exit code 1 where something is not as it should be, 77 where this machine cannot run it.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import cluster_faults
from ray_nodes import INSIDE, NOISY, QUICK, ROOT, Check, Cluster, content, each_once, in_namespace, journal
from ray_nodes import verdicts, wait_for

sys.path.insert(0, str(ROOT / "python/examples"))
from environment_client import Environment, policy  # noqa: E402 - beside the package, not in it

MODELS = '''
import torch

def build(width):
    model = torch.nn.Sequential(torch.nn.Linear(width, 8), torch.nn.GELU(), torch.nn.LayerNorm(8))
    return model, torch.ones(2, width)
'''
# Small models of a package that the extractor's catalogue knows.
CATALOGUE = ["--from-catalogue", "transformers", "--only", "*/BertFor[MN]*_tiny"]
# What a unit may cost besides its work, in milliseconds.
MOST_OVERHEAD = 30.0


def bench(check: Check, cluster: Cluster) -> None:
    count = 32 if check.large else 8
    words = ["bench", check.tasks(count), "--passes", ROOT / "bench/passes", *QUICK]
    alone, out = check.folder / "bench_alone", check.folder / "bench_cluster"
    check.run(*words, "--out", alone)
    begun = time.monotonic()
    ran = check.run(*words, "--cluster", cluster.address, *NOISY, "--out", out, "--json")
    check.note(f"{count} tasks in {time.monotonic() - begun:.0f} s")
    found = json.loads(ran.stdout)
    check.expect(verdicts(alone) == verdicts(out) and each_once(out, out), f"bench: {count} tasks as alone, each once")
    check.expect(len(found["cluster"]["nodes"]) >= 3, "bench: --json names the nodes")
    worked = {unit["node"] for unit in journal(out)}
    check.expect(len(worked) >= 2, f"bench: {len(worked)} nodes worked")
    before = journal(out)
    check.run(*words, "--cluster", cluster.address, *NOISY, "--out", out)
    check.expect(before == journal(out) and each_once(out, out), "bench: the same command repeats nothing")
    ran = check.run(*words, "--no-rules", "--cluster", cluster.address, "--cluster-device", "no such", "--out",
                    check.folder / "none", codes=(3,))
    check.expect("no node of the cluster may work" in ran.stderr and "another device" in ran.stderr,
                 "bench: a device class that nobody has is said")


def solve(check: Check, cluster: Cluster) -> None:
    count = 50 if check.large else 4
    words = ["solve", check.tasks(count), "--no-tune", "--quick", "--seconds", "0"]
    alone, out = check.folder / "solve_alone", check.folder / "solve_cluster"
    check.run(*words, "--out", alone)
    check.run(*words, "--cluster", cluster.address, *NOISY, "--out", out)
    check.expect(verdicts(alone / "run") == verdicts(out / "run") and each_once(out / "run", out),
                 f"solve: {count} tasks as alone, each once")
    check.expect(list(content(alone / "passes")) == list(content(out / "passes")), "solve: the same passes are there")


def extract(check: Check, cluster: Cluster) -> None:
    count = 20 if check.large else 3
    source = check.folder / "models.py"
    factories = "".join(f"\ndef model_{n}():\n    return build({n + 3})\n" for n in range(count))
    source.write_text(MODELS + factories)
    words = ["extract", *(f"{source}:model_{n}" for n in range(count))]
    alone, out = check.folder / "extract_alone", check.folder / "extract_cluster"
    check.run(*words, "--out", alone, "--jobs", "1")
    check.run(*words, "--cluster", cluster.address, "--out", out)
    same = content(alone / "samples") == content(out / "samples") != {}
    check.expect(same, f"extract: {count} models as alone, every byte")


def dataset(check: Check, cluster: Cluster) -> None:
    """Models of a package, captured on nodes; the store is that of one machine."""
    stores = []
    for name, more in (("alone", ["--jobs", "1"]), ("cluster", ["--cluster", cluster.address])):
        models, store = check.folder / f"models_{name}", check.folder / f"{name}.pnds"
        ran = check.run("dataset", "build", *CATALOGUE, "--models", models, "--store", store, *more)
        stores.append((content(models / "samples"), ran.stdout.strip().splitlines()[-1:]))
    captured = len({name.rsplit("/", 1)[0] for name in stores[0][0]})
    same = stores[0] == stores[1] and captured > 1 and stores[0][1][0].startswith("content ")
    check.expect(same, f"dataset build: {captured} graphs and the store as alone", str(stores[0][1] + stores[1][1]))


@contextmanager
def scripted_model() -> Iterator[str]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    model = subprocess.Popen(
        [sys.executable, ROOT / "tools/scripted_model.py", "--port", str(port), "--passes", ROOT / "bench/passes"],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )
    try:
        wait_for(lambda: socket.create_connection(("127.0.0.1", port)).close())
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        model.kill()
        model.wait()


def agent(check: Check, cluster: Cluster) -> None:
    count = 8 if check.large else 3
    with scripted_model() as url:
        words = ["agent", "run", check.tasks(count), "--model", "scripted", "--base-url", url, *QUICK, "-k", "2"]
        alone, out = check.folder / "agent_alone", check.folder / "agent_cluster"
        check.run(*words, "--out", alone)
        check.run(*words, "--cluster", cluster.address, *NOISY, "--out", out)
    same = verdicts(alone / "best") == verdicts(out / "best") != {}
    check.expect(same, f"agent: {count} tasks, 2 attempts each, as alone")


def serve(check: Check, cluster: Cluster) -> None:
    """A trainer's client gets the same rewards from evaluators on nodes, for right passes and for wrong ones."""
    tasks = check.tasks(8 if check.large else 3)
    names = sorted(path.name for path in tasks.iterdir())
    handed_in = [(name, ROOT / "bench/passes" / name) for name in names]
    # The pass of another task matches nothing.
    handed_in += [(names[0], ROOT / "bench/passes" / names[1])]
    found = []
    for more in ([], ["--cluster", cluster.address, *NOISY]):
        command = check.command("--json", "agent", "serve", tasks, "--listen", "127.0.0.1:0", *QUICK, *more)
        server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        try:
            assert server.stdout is not None
            url = f"http://{json.loads(server.stdout.readline())['address']}"
            found.append([rewards(url, task, passes) for task, passes in handed_in])
        finally:
            server.kill()
            server.wait()
    same = found[0] == found[1] and len({tiers[-1] for tiers, _, _ in found[0]}) >= 2
    check.expect(same, f"agent serve: {len(handed_in)} episodes rewarded as alone", f"{found[0]}\n{found[1]}")


def rewards(url: str, task: str, passes: Path) -> tuple[list[str], list[float], dict[str, str]]:
    """The tier after each reply, the rewards before anything is timed, and the verdicts; speeds differ from run to run."""
    environment = Environment(url, task)
    steps = [environment.step(calls) for calls in policy(passes)]
    graphs = (environment.score()["assessment"] or {}).get("graphs", [])
    untimed = [step["tiered_reward"] for step in steps[:2]]
    return [step["tier"] for step in steps], untimed, {graph["graph"]: graph["verdict"] for graph in graphs}


def overhead(check: Check, cluster: Cluster) -> None:
    """Units that are no work: what a worker waits between two of them is what a unit costs besides."""
    count = 900 if check.large else 150
    tasks, passes = check.empty_units(count)
    out = check.folder / "overhead"
    check.run("bench", tasks, "--passes", passes, *QUICK, "--cluster", cluster.address, *NOISY, "--out", out)
    units = journal(out)
    waited = sorted(1e3 * unit["waited"] for unit in units if "waited" in unit)
    work = statistics.median(1e3 * unit["seconds"] for unit in units)
    median, most = statistics.median(waited), waited[len(waited) * 9 // 10]
    nodes = len({unit["node"] for unit in units})
    check.note(f"{len(units)} units of {work:.1f} ms on {nodes} nodes: {median:.1f} ms between two (median), "
               f"{statistics.fmean(waited):.1f} (mean), {most:.1f} (nine of ten below)")
    check.note(f"of that: {disk_wait(out):.1f} ms for one wait for the disk, {actor_call(cluster):.1f} ms for one call of an actor")
    check.expect(len(units) == count and median < MOST_OVERHEAD, f"overhead: a unit costs {median:.1f} ms")


def disk_wait(folder: Path) -> float:
    """Milliseconds until a line is on the disk (median)."""
    times = []
    with open(folder / "probe", "ab", buffering=0) as file:
        for _ in range(40):
            file.write(b"x" * 300)
            begun = time.monotonic()
            os.fdatasync(file.fileno())
            times.append(1e3 * (time.monotonic() - begun))
    return statistics.median(times)


def actor_call(cluster: Cluster) -> float:
    """Milliseconds for a call of an actor with 8 KiB in and out (median), as Ray alone gives it."""
    probe = """
import statistics, sys, time, ray
ray.init(address=sys.argv[1], log_to_driver=False, logging_level="ERROR")
@ray.remote(num_cpus=1)
class Echo:
    def call(self, content):
        return content
echo, times = Echo.remote(), []
for _ in range(220):
    begun = time.monotonic()
    ray.get(echo.call.remote(bytes(8192)))
    times.append(time.monotonic() - begun)
print(1e3 * statistics.median(times[20:]))
"""
    ran = subprocess.run([sys.executable, "-c", probe, cluster.address], capture_output=True, text=True, check=True)
    return float(ran.stdout.split()[-1])


def deaths(check: Check) -> None:
    """Nodes, the driver and the head die while tasks are judged; nothing is lost, nothing is done twice."""
    count = 200 if check.large else 12
    nodes, drivers = (20, 5) if check.large else (2, 1)
    tasks = check.tasks(count)
    words = ["bench", tasks, "--passes", check.passes(tasks), *QUICK]
    alone, out = check.folder / "deaths_alone", check.folder / "deaths_cluster"
    check.run(*words, "--out", alone)
    # On nodes each race lasts long enough that somebody can die in the middle of it; verdicts do not depend on that.
    words[words.index("--trials") + 1] = "100000"
    words[-1] = "1"
    cluster = Cluster(3)
    plan = ["node"] * nodes + ["driver"] * (drivers - 1)
    random.shuffle(plan)
    # Each of them while there is something to lose.
    plan.insert(1, "head")
    plan.insert(0, "driver")
    killed: Counter[str] = Counter()
    try:
        while len(journal(out)) < count:
            command = check.command(*words, "--cluster", cluster.address, *NOISY, "--out", out)
            # A file, not a pipe that nobody reads: Ray says much about nodes that die.
            with open(check.folder / "deaths_said", "w") as file:
                driver = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=file)
            before, until = len(journal(out)), time.monotonic() + 600
            while driver.poll() is None and time.monotonic() < until:
                time.sleep(0.1 + random.random() * 0.5)
                # Only while it works: before the first unit there is nothing to lose.
                if plan and len(journal(out)) > before and driver.poll() is None:
                    before = len(journal(out))
                    victim = plan.pop(0)
                    killed[victim] += 1
                    if victim == "node":
                        cluster.kill_one()
                        continue
                    # The driver is at its end, or will notice that its cluster is.
                    if victim == "driver":
                        driver.send_signal(signal.SIGKILL)
                    else:
                        cluster.kill_head()
                    break
            code = driver.wait()
            said = (check.folder / "deaths_said").read_text()
            if code == 3 and "the cluster is lost" in said:
                cluster.end()
                cluster = Cluster(3)
            elif code not in (0, 1, -signal.SIGKILL):
                check.expect(False, f"the driver gives {code}", said)
                return
    finally:
        cluster.end()
    counted = f"{killed['node']} nodes, {killed['driver']} drivers, {killed['head']} heads"
    check.expect(not plan, f"deaths: {counted}")
    check.expect(verdicts(alone) == verdicts(out), f"deaths: {count} tasks as alone")
    check.expect(each_once(out, out), "deaths: nothing lost, nothing stored twice")


PARTS: dict[str, Callable[[Check, Cluster], None]] = {
    "overhead": overhead, "bench": bench, "solve": solve, "agent": agent, "serve": serve, "extract": extract,
    "dataset": dataset,
}  # fmt: skip
# Parts that make clusters of their own.
OWN: dict[str, Callable[[Check], None]] = {"faults": cluster_faults.faults, "deaths": deaths}


def lacks_torch(name: str) -> bool:
    return name in ("extract", "dataset") and not os.environ.get("PASSNET_PYTHON")


def inside(options: argparse.Namespace) -> int:
    with tempfile.TemporaryDirectory(prefix="passnet-cluster-") as folder:
        check = Check(options.passnet.resolve(), Path(folder), options.large)
        chosen = options.part or [*PARTS, *OWN]
        asked = [name for name in PARTS if name in chosen and not lacks_torch(name)]
        if asked:
            cluster = Cluster(3)
            try:
                for name in asked:
                    PARTS[name](check, cluster)
            finally:
                cluster.end()
        for name in OWN:
            if name in chosen:
                OWN[name](check)
    print(f"{check.counted - len(check.wrong)} of {check.counted} as they should be")
    return 1 if check.wrong else 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("passnet", type=Path)
    parser.add_argument("--large", action="store_true", help="the sizes of docs/cluster.md")
    parser.add_argument("--part", action="append", choices=[*PARTS, *OWN], help="these alone; may be said again")
    options = parser.parse_args()
    return inside(options) if os.environ.get(INSIDE) else in_namespace(str(Path(__file__).resolve()))


if __name__ == "__main__":
    sys.exit(main())
