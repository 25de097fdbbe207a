"""A Ray cluster on this machine for checks, in a network namespace with nothing but loopback: nodes that can be killed,
cut off or given surroundings of their own. `tools/check_cluster.py` and `tools/cluster_faults.py` use it.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
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
Line = dict[str, Any]


class Cluster:
    """A head without cores, and nodes of one core each."""

    def __init__(self, nodes: int, address: str = "127.0.0.1") -> None:
        os.environ["RAY_health_check_period_ms"] = "1000"
        os.environ["RAY_health_check_failure_threshold"] = "3"
        os.environ["RAY_health_check_timeout_ms"] = "5000"
        # Ray's workers give way to everything else on the machine unless they are told not to.
        os.environ["RAY_worker_niceness"] = "0"
        from ray.cluster_utils import Cluster as RayCluster

        self.host = address
        self.is_dead = False
        self.cluster = RayCluster(initialize_head=True, head_node_args=self.resources(0))
        self.nodes = [self.add() for _ in range(nodes)]

    def resources(self, cpus: int) -> dict[str, Any]:
        return {
            "num_cpus": cpus,
            "object_store_memory": 100 << 20,
            "include_dashboard": False,
            "node_ip_address": self.host,
        }

    @property
    def address(self) -> str:
        return self.cluster.address

    def add(self, **variables: str) -> Any:
        """A node whose processes have these variables besides."""
        return self.cluster.add_node(wait=False, env_vars=variables, **self.resources(1))

    def kill_one(self) -> None:
        """One dies without a word, and another one joins."""
        node = self.nodes.pop(random.randrange(len(self.nodes)))
        self.cluster.remove_node(node, allow_graceful=False)
        self.nodes.append(self.add())

    def kill_head(self) -> None:
        """The head and all nodes die: nothing is left that could be ended in order."""
        self.is_dead = True
        for node in (self.cluster.head_node, *self.nodes):
            node.kill_all_processes(check_alive=False, allow_graceful=False)

    def end(self) -> None:
        if not self.is_dead:
            self.cluster.shutdown()


class Check:
    """What is looked at, and how often it was as it should be."""

    def __init__(self, passnet: Path, folder: Path, large: bool) -> None:
        self.passnet = passnet
        self.folder = folder
        self.large = large
        self.wrong: list[str] = []
        self.counted = 0
        random.seed(7)

    def expect(self, holds: bool, what: str, said: str = "") -> None:
        self.counted += 1
        print(f"{'ok' if holds else 'WRONG':6} {what}", flush=True)
        if not holds:
            self.wrong.append(what)
            print(said[-3000:], flush=True)

    def note(self, what: str) -> None:
        print(f"       {what}", flush=True)

    def command(self, *words: object) -> list[str]:
        return [str(self.passnet), *map(str, words)]

    def run(self, *words: object, codes: tuple[int, ...] = (0, 1)) -> subprocess.CompletedProcess[str]:
        ran = subprocess.run(self.command(*words), capture_output=True, text=True, check=False)
        if ran.returncode not in codes:
            self.expect(False, f"`passnet {' '.join(map(str, words))}` gives {ran.returncode}", ran.stderr)
        return ran

    def tasks(self, count: int) -> Path:
        """So many of the bundled tasks, a graph of each, again under other names where there are too few."""
        folder = self.folder / f"tasks{count}"
        bundled = sorted((ROOT / "bench/tasks").iterdir())
        for number in range(0 if folder.exists() else count):
            task = bundled[number % len(bundled)]
            name = task.name if number < len(bundled) else f"{task.name}_{number // len(bundled)}"
            graph = (task / "graph_list.txt").read_text().splitlines()[-1]
            shutil.copytree(task / graph, folder / name / graph)
            (folder / name / "graph_list.txt").write_text(graph + "\n")
        return folder

    def passes(self, tasks: Path) -> Path:
        """The bundled passes of tasks, also of those under other names."""
        folder = self.folder / f"passes_of_{tasks.name}"
        bundled = {path.name for path in (ROOT / "bench/passes").iterdir()}
        for task in () if folder.exists() else sorted(tasks.iterdir()):
            origin = task.name if task.name in bundled else task.name.rpartition("_")[0]
            shutil.copytree(ROOT / "bench/passes" / origin, folder / task.name)
        return folder

    def empty_units(self, count: int) -> list[Path]:
        """Tasks and passes that are judged at once: the pass is no Python."""
        tasks, passes = self.folder / f"tasks_empty{count}", self.folder / "passes_broken"
        task = sorted((ROOT / "bench/tasks").iterdir())[0]
        graph = (task / "graph_list.txt").read_text().splitlines()[-1]
        for number in range(0 if tasks.exists() else count):
            folder = tasks / f"task_{number:04}"
            shutil.copytree(task / graph, folder / graph)
            (folder / "graph_list.txt").write_text(graph + "\n")
        passes.mkdir(exist_ok=True)
        (passes / "sorted_output_pass_rule_names.json").write_text('["Broken"]')
        (passes / "Broken.py").write_text("def pattern(:\n")
        return [tasks, passes]


def lines(path: Path) -> list[Line]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def verdicts(run: Path) -> dict[tuple[str, str], str]:
    graphs = [event for event in lines(run / "events.jsonl") if event["event"] == "graph"]
    return {(event["sample"], event["graph"]): event["verdict"] for event in graphs}


def journal(folder: Path, kind: str = "unit") -> list[Line]:
    return [event for event in lines(folder / "cluster.jsonl") if event["event"] == kind]


def each_once(run: Path, folder: Path) -> bool:
    """Whether every graph and every unit is stored once."""
    graphs = Counter((e["sample"], e["graph"]) for e in lines(run / "events.jsonl") if e["event"] == "graph")
    units = Counter(event["unit"] for event in journal(folder))
    return set(graphs.values()) == {1} and set(units.values()) == {1}


def content(folder: Path) -> dict[str, bytes]:
    """Every file below a folder."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


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


def in_namespace(script: str) -> int:
    """Runs a tool again in namespaces of its own; 77 where this machine gives none."""
    try:
        import ray  # noqa: F401
    except ImportError as error:
        print(f"skipped: {error}")
        return 77
    # A mount namespace besides: one of the faults is a disk without room.
    space = ["unshare", "--user", "--map-root-user", "--net", "--mount", "sh", "-c"]
    if subprocess.run([*space, "ip link set lo up"], check=False, capture_output=True).returncode != 0:
        print("skipped: `unshare` gives no network namespace here")
        return 77
    words = [sys.executable, script, *sys.argv[1:]]
    environment = {"PASSNET_RAY_PYTHON": sys.executable, **os.environ, INSIDE: "1"}
    return subprocess.run([*space, 'ip link set lo up && exec "$@"', "sh", *words], check=False, env=environment).returncode
