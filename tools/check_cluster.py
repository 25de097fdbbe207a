#!/usr/bin/env python3
"""A Ray cluster of three nodes on this machine: the same results as one process, whoever dies meanwhile.

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
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
INSIDE = "PASSNET_CHECK_CLUSTER_INSIDE"
QUICK = ["--quick", "--warmup", "1", "--trials", "10", "--seconds", "0"]
# Three nodes share the cores of one machine: their clocks are not what is looked at here.
NOISY = ["--cluster-noise", "1000"]
MODELS = '''
import torch

def build(width):
    model = torch.nn.Sequential(torch.nn.Linear(width, 8), torch.nn.GELU(), torch.nn.LayerNorm(8))
    return model, torch.ones(2, width)
'''


class Cluster:
    """A head and nodes of one core each, which can be killed."""

    def __init__(self, nodes: int) -> None:
        os.environ["RAY_health_check_period_ms"] = "1000"
        os.environ["RAY_health_check_failure_threshold"] = "3"
        from ray.cluster_utils import Cluster as RayCluster

        self.cluster = RayCluster(initialize_head=True, head_node_args=self.resources(0))
        self.nodes = [self.add() for _ in range(nodes)]

    @staticmethod
    def resources(cpus: int) -> dict[str, Any]:
        return {"num_cpus": cpus, "object_store_memory": 100 << 20, "include_dashboard": False}

    @property
    def address(self) -> str:
        return self.cluster.address

    def add(self) -> Any:
        return self.cluster.add_node(wait=False, **self.resources(1))

    def kill_one(self) -> None:
        """One dies without a word, and another one joins."""
        node = self.nodes.pop(random.randrange(len(self.nodes)))
        self.cluster.remove_node(node, allow_graceful=False)
        self.nodes.append(self.add())

    def kill_head(self) -> None:
        for node in (self.cluster.head_node, *self.nodes):
            node.kill_all_processes(check_alive=False, allow_graceful=False)

    def end(self) -> None:
        self.cluster.shutdown()


class Check:
    def __init__(self, passnet: Path, folder: Path, large: bool) -> None:
        self.passnet = passnet
        self.folder = folder
        self.large = large
        self.wrong: list[str] = []
        self.counted = 0
        random.seed(7)

    def expect(self, holds: bool, what: str) -> None:
        self.counted += 1
        print(f"{'ok' if holds else 'WRONG':6} {what}", flush=True)
        if not holds:
            self.wrong.append(what)

    def command(self, *words: object) -> list[str]:
        return [str(self.passnet), *map(str, words)]

    def run(self, *words: object, codes: tuple[int, ...] = (0, 1)) -> subprocess.CompletedProcess[str]:
        ran = subprocess.run(self.command(*words), capture_output=True, text=True, check=False)
        if ran.returncode not in codes:
            self.expect(False, f"`passnet {' '.join(map(str, words))}` gives {ran.returncode}:\n{ran.stderr[-3000:]}")
        return ran

    def tasks(self, count: int) -> Path:
        """So many of the bundled tasks, again under other names where there are too few."""
        folder = self.folder / f"tasks{count}"
        bundled = sorted((ROOT / "bench/tasks").iterdir())
        for number in range(count):
            task = bundled[number % len(bundled)]
            name = task.name if number < len(bundled) else f"{task.name}_{number // len(bundled)}"
            shutil.copytree(task, folder / name)
            graphs = (task / "graph_list.txt").read_text().splitlines()
            (folder / name / "graph_list.txt").write_text(graphs[-1] + "\n")
        return folder


def events(run: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (run / "events.jsonl").read_text().splitlines()]


def verdicts(run: Path) -> dict[tuple[str, str], str]:
    return {(e["sample"], e["graph"]): e["verdict"] for e in events(run) if e["event"] == "graph"}


def each_once(run: Path, journal: Path) -> bool:
    graphs = Counter((e["sample"], e["graph"]) for e in events(run) if e["event"] == "graph")
    units = Counter(e["unit"] for e in journal_units(journal))
    return set(graphs.values()) == {1} and set(units.values()) == {1}


def journal_units(folder: Path) -> list[dict[str, Any]]:
    lines = (folder / "cluster.jsonl").read_text().splitlines()
    return [event for event in map(json.loads, lines) if event["event"] == "unit"]


def bench(check: Check, cluster: Cluster) -> None:
    count = 32 if check.large else 8
    words = ["bench", check.tasks(count), "--passes", ROOT / "bench/passes", *QUICK]
    alone, out = check.folder / "bench_alone", check.folder / "bench_cluster"
    check.run(*words, "--out", alone)
    begun = time.monotonic()
    ran = check.run(*words, "--cluster", cluster.address, *NOISY, "--out", out, "--json")
    print(f"       {count} tasks in {time.monotonic() - begun:.0f} s", flush=True)
    found = json.loads(ran.stdout)
    check.expect(verdicts(alone) == verdicts(out) and each_once(out, out), f"bench: {count} tasks as alone, each once")
    check.expect(len(found["cluster"]["nodes"]) >= 3, "bench: --json names the nodes")
    worked = {unit["node"] for unit in journal_units(out)}
    check.expect(len(worked) >= 2, f"bench: {len(worked)} nodes worked")
    before = journal_units(out)
    check.run(*words, "--cluster", cluster.address, *NOISY, "--out", out)
    check.expect(before == journal_units(out) and each_once(out, out), "bench: the same command repeats nothing")
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
    names = lambda folder: sorted(str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file())  # noqa: E731
    check.expect(names(alone / "passes") == names(out / "passes"), "solve: the same passes are there")


def extract(check: Check, cluster: Cluster) -> None:
    count = 20 if check.large else 3
    source = check.folder / "models.py"
    factories = "".join(f"\ndef model_{n}():\n    return build({n + 3})\n" for n in range(count))
    source.write_text(MODELS + factories)
    words = ["extract", *(f"{source}:model_{n}" for n in range(count))]
    alone, out = check.folder / "extract_alone", check.folder / "extract_cluster"
    check.run(*words, "--out", alone, "--jobs", "1")
    check.run(*words, "--cluster", cluster.address, "--out", out)
    content = lambda folder: {  # noqa: E731
        str(path.relative_to(folder)): path.read_bytes() for path in (folder / "samples").rglob("*") if path.is_file()
    }
    check.expect(content(alone) == content(out) != {}, f"extract: {count} models as alone, every byte")


def agent(check: Check, cluster: Cluster) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    model = subprocess.Popen(
        [sys.executable, ROOT / "tools/scripted_model.py", "--port", str(port), "--passes", ROOT / "bench/passes"],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )
    try:
        wait_for(lambda: socket.create_connection(("127.0.0.1", port)).close())
        tasks = check.tasks(3)
        words = ["agent", "run", tasks, "--model", "scripted", "--base-url", f"http://127.0.0.1:{port}/v1", *QUICK,
                 "-k", "2"]
        alone, out = check.folder / "agent_alone", check.folder / "agent_cluster"
        check.run(*words, "--out", alone)
        check.run(*words, "--cluster", cluster.address, *NOISY, "--out", out)
        check.expect(verdicts(alone / "best") == verdicts(out / "best") != {}, "agent: 3 tasks, 2 attempts each, as alone")
    finally:
        model.kill()
        model.wait()


def wait_for(works: Callable[[], object], seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while True:
        try:
            works()
            return
        except OSError:
            if time.monotonic() > end:
                raise
            time.sleep(0.1)


def deaths(check: Check) -> None:
    """Nodes, the driver and the head die while tasks are judged; nothing is lost, nothing is done twice."""
    count = 50 if check.large else 12
    nodes, drivers = (20, 5) if check.large else (2, 1)
    words = ["bench", check.tasks(count), "--passes", ROOT / "bench/passes", *QUICK]
    alone, out = check.folder / "deaths_alone", check.folder / "deaths_cluster"
    check.run(*words, "--out", alone)
    cluster = Cluster(3)
    plan = ["node"] * nodes + ["driver"] * (drivers - 1)
    random.shuffle(plan)
    # Each of them while there is something to lose.
    plan.insert(1, "head")
    plan.insert(0, "driver")
    killed: Counter[str] = Counter()
    done = lambda: len(journal_units(out)) if (out / "cluster.jsonl").exists() else 0  # noqa: E731
    try:
        while done() < count:
            command = check.command(*words, "--cluster", cluster.address, *NOISY, "--out", out)
            driver = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
            before, until = done(), time.monotonic() + 600
            while driver.poll() is None and time.monotonic() < until:
                time.sleep(0.1 + random.random() * 0.5)
                # Only while it works: before the first unit there is nothing to lose.
                if plan and done() > before and driver.poll() is None:
                    before = done()
                    victim = plan.pop(0)
                    killed[victim] += 1
                    if victim == "node":
                        cluster.kill_one()
                    elif victim == "driver":
                        driver.send_signal(signal.SIGKILL)
                    else:
                        cluster.kill_head()
            code = driver.wait()
            said = driver.stderr.read() if driver.stderr else ""
            if code == 3 and "the cluster is lost" in said:
                cluster.end()
                cluster = Cluster(3)
            elif code not in (0, 1, -signal.SIGKILL):
                check.expect(False, f"the driver gives {code}: {said[-3000:]}")
                return
    finally:
        cluster.end()
    print(f"       killed: {dict(killed)}", flush=True)
    check.expect(min(killed[who] for who in ("node", "driver", "head")) > 0, f"deaths: {killed['node']} nodes, {killed['driver']} drivers, {killed['head']} heads")
    check.expect(verdicts(alone) == verdicts(out), f"deaths: {count} tasks as alone")
    check.expect(each_once(out, out), "deaths: nothing lost, nothing stored twice")


def inside(options: argparse.Namespace) -> int:
    with tempfile.TemporaryDirectory(prefix="passnet-cluster-") as folder:
        check = Check(options.passnet.resolve(), Path(folder), options.large)
        os.environ["PASSNET_RAY_PYTHON"] = sys.executable
        parts = {"bench": bench, "solve": solve, "agent": agent, "extract": extract}
        asked = [name for name in parts if options.part in (None, name)]
        if not os.environ.get("PASSNET_PYTHON") and "extract" in asked:
            asked.remove("extract")
        if asked:
            cluster = Cluster(3)
            try:
                for name in asked:
                    parts[name](check, cluster)
            finally:
                cluster.end()
        if options.part in (None, "deaths"):
            deaths(check)
    print(f"{check.counted - len(check.wrong)} of {check.counted} as they should be")
    return 1 if check.wrong else 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("passnet", type=Path)
    parser.add_argument("--large", action="store_true", help="the sizes of docs/cluster.md")
    parser.add_argument("--part", help="bench, solve, agent, extract or deaths alone")
    options = parser.parse_args()
    if os.environ.get(INSIDE):
        return inside(options)
    try:
        import ray  # noqa: F401
    except ImportError as error:
        print(f"skipped: {error}")
        return 77
    space = ["unshare", "--user", "--map-root-user", "--net", "sh", "-c"]
    if subprocess.run([*space, "ip link set lo up"], check=False, capture_output=True).returncode != 0:
        print("skipped: `unshare` gives no network namespace here")
        return 77
    words = [sys.executable, str(Path(__file__).resolve()), *sys.argv[1:]]
    script = 'ip link set lo up && exec "$@"'
    return subprocess.run([*space, script, "sh", *words], check=False, env={**os.environ, INSIDE: "1"}).returncode


if __name__ == "__main__":
    sys.exit(main())
