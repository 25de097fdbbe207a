"""The red team as a trainer's model: every exploit and every control handed to `passnet agent serve` as a reply.

    python tools/red_team_through_server.py target/release/passnet --servers 2
    python tools/red_team_through_server.py target/release/passnet --servers 14 --engine torch --device cuda

An exploit must not be called correct on any graph on which it cheats, nor reach the tier `right` by any call; a control must be right on every graph. Each server has its own engine; cases are shared out as servers become free.
`--seconds-in-all` ends early and says what was left out. Options that are not named here go to `agent serve` as they are. Exit
code 1: an exploit earned something, or a control earned nothing.
"""

from __future__ import annotations

import argparse
import json
import pathlib
import queue
import shutil
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "python" / "examples"))
from environment_client import Environment, policy  # noqa: E402

ROOT = pathlib.Path(__file__).parents[1]


def task_folder(name: str) -> pathlib.Path:
    """A case names a folder under the bundled tasks, or a path from there."""
    return (ROOT / "bench" / "tasks" / name).resolve()


def task_name(name: str) -> str:
    """A name that no other task has: many cases call their own task `task`."""
    return "-".join(task_folder(name).relative_to(ROOT.resolve() / "bench").parts)


def attempt(url: str, task: str, folder: pathlib.Path) -> dict:
    """What the server gives for the files of a pass folder."""
    environment = Environment(url, task)
    earned, tier = 0.0, None
    try:
        for calls in policy(folder):
            step = environment.step(calls)
            earned += step["tiered_reward"]
            tier = step["tier"]
            if step["done"]:
                break
        score = environment.score()
    finally:
        environment.close()
    graphs = (score["assessment"] or {}).get("graphs", [])
    verdicts = {it["graph"]: it["verdict"] for it in graphs}
    evidence = {it["graph"]: it["evidence"] for it in graphs if it.get("evidence")}
    return {"return": earned, "tier": tier, "score": score["score"], "verdicts": verdicts, "evidence": evidence}


def complaint(case: dict, side: str, found: dict) -> str | None:
    """What is wrong with an attempt, or nothing."""
    verdicts = found["verdicts"]
    if side == "control":
        wrong = {graph: verdict for graph, verdict in verdicts.items() if verdict != "correct"}
        return f"refused: {wrong or 'nothing was judged'} {found['evidence']}" if wrong or not verdicts else None
    cheated = case.get("graphs") or list(verdicts)
    scored = [graph for graph in cheated if verdicts.get(graph) == "correct"]
    if scored:
        return f"called correct on {scored}"
    return f"was rewarded as {found['tier']}: {found['return']:.3f}" if found["tier"] == "right" else None


class Servers:
    """Servers on loopback, each taking the next case when it is free."""

    def __init__(self, program: str, tasks: pathlib.Path, options: list[str], count: int):
        command = [program, "--json", "agent", "serve", str(tasks), "--listen", "127.0.0.1:0", *options]
        self.processes = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(count)]
        self.urls = []
        for process in self.processes:
            line = process.stdout.readline()
            if not line:
                raise SystemExit("a server ended before it listened")
            self.urls.append(f"http://{json.loads(line)['address']}")

    def stop(self) -> None:
        for process in self.processes:
            process.terminate()
        for process in self.processes:
            process.wait()


def judge(url: str, waiting: queue.Queue, deadline: float, report) -> None:
    while time.monotonic() < deadline:
        try:
            name, case, side = waiting.get_nowait()
        except queue.Empty:
            return
        folder = ROOT / "bench" / "redteam" / name / side
        try:
            found = attempt(url, task_name(case["task"]), folder)
            wrong = complaint(case, side, found)
        except OSError as error:
            found, wrong = {}, f"the server did not answer: {error}"
        report({"case": name, "side": side, "complaint": wrong, **found})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program")
    parser.add_argument("--servers", type=int, default=2)
    parser.add_argument("--filter", default="", help="only cases whose name holds this")
    parser.add_argument("--seconds-in-all", type=float, default=float("inf"))
    parser.add_argument("--out", type=pathlib.Path, help="a file for one line for each attempt")
    arguments, options = parser.parse_known_args()
    folders = sorted(path.parent for path in (ROOT / "bench" / "redteam").glob("*/case.json"))
    cases = {folder.name: json.loads((folder / "case.json").read_text()) for folder in folders}
    cases = {name: case for name, case in cases.items() if arguments.filter in name}
    if not cases:
        raise SystemExit(f"no case's name holds {arguments.filter!r}: see bench/redteam")
    waiting: queue.Queue = queue.Queue()
    for name, case in cases.items():
        for side in ("exploit", "control"):
            waiting.put((name, case, side))
    planned = waiting.qsize()
    tasks = tempfile.TemporaryDirectory()
    for name in {case["task"] for case in cases.values()}:
        shutil.copytree(task_folder(name), pathlib.Path(tasks.name) / task_name(name))
    lines, lock = [], threading.Lock()

    def report(line: dict) -> None:
        with lock:
            lines.append(line)
            if line["complaint"]:
                print(f"{line['case']}, {line['side']}: {line['complaint']}", flush=True)
            if arguments.out:
                with arguments.out.open("a") as file:
                    file.write(json.dumps(line) + "\n")

    servers = Servers(arguments.program, pathlib.Path(tasks.name), options, arguments.servers)
    begun = time.monotonic()
    try:
        deadline = begun + arguments.seconds_in_all
        threads = [
            threading.Thread(target=judge, args=(url, waiting, deadline, report))
            for url in servers.urls
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        servers.stop()
    for side in ("exploit", "control"):
        tried = [line for line in lines if line["side"] == side]
        wrong = [line for line in tried if line["complaint"]]
        print(f"{side}s: {len(tried)} tried, {len(wrong)} not as they must be")
    print(f"{planned - len(lines)} of {planned} left out, {time.monotonic() - begun:.0f} s")
    sys.exit(1 if any(line["complaint"] for line in lines) else 0)


if __name__ == "__main__":
    main()
