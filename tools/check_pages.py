#!/usr/bin/env python3
"""Looks at the leaderboard's pages in a browser.

    tools/check_pages.py PASSNET [--shots DIR] [--runs RUN...]

Makes runs, a site and a server, opens every kind of page in light and dark, 390 and 1,440 pixels wide, and tries sorting,
filtering, searching, comparing and replaying. A message on the console, a request that leaves the page, or text that is
wider than the window is a failure. Needs chromium; exit code 77 says that there is none.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from chromium import BrowserError, Chromium, Page

ROOT = Path(__file__).resolve().parents[1]
MISSING = 77
# Where the links of a page lead, without the part behind.
LINKS = "[...document.querySelectorAll('a[href]')].map((a) => a.href.split('#')[0].split('?')[0])"
# The column by which a table is sorted; how many steps can be seen.
SORTED = "document.querySelector('th[aria-sort]')?.textContent.trim()"
STEPS = "[...document.querySelectorAll('.step')].filter((it) => it.getClientRects().length > 0).length"
LOOKS = [("light", 1440), ("light", 390), ("dark", 1440), ("dark", 390)]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("passnet", type=Path, help="the program")
    parser.add_argument("--shots", type=Path, help="keep pictures of the pages in this folder")
    parser.add_argument("--runs", type=Path, nargs="*", default=[], help="run folders, instead of runs made here")
    options = parser.parse_args()
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        print("skipped: no chromium on the path")
        return MISSING
    with tempfile.TemporaryDirectory() as folder, Chromium(chromium) as browser:
        work = Path(folder)
        passnet = Passnet(options.passnet.resolve(), work)
        runs = [run.resolve() for run in options.runs] or passnet.make_runs()
        check = Check(browser, options.shots)
        check.site(passnet.site(runs))
        with passnet.serve(runs) as address:
            check.server(address)
    for problem in check.problems:
        print(f"FAILED {problem}")
    print(f"{check.looked} pages looked at, {len(check.problems)} problems")
    return 1 if check.problems else 0


class Passnet:
    """The program, and what it makes for this check."""

    def __init__(self, program: Path, work: Path) -> None:
        self.program = program
        self.work = work

    def run(self, *arguments: str) -> str:
        # Exit code 1 says that something under test failed, which a bench may.
        done = subprocess.run([str(self.program), *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
        if done.returncode not in (0, 1):
            raise RuntimeError(f"passnet {' '.join(arguments)}: {done.stderr}")
        return done.stdout

    def make_runs(self) -> list[Path]:
        quick = ["--quick", "--trials", "10", "--warmup", "1", "--seconds", "0.02"]
        tasks = [f"bench/tasks/{name}" for name in ("swiglu", "layer_scale_add", "quick_gelu_add")]
        made = []
        for name, how in [("passes", ["--passes", "bench/passes"]), ("eager", ["--compiler", "eager"]),
                          ("joined", ["--compiler", "joined"])]:
            out = self.work / name
            self.run("bench", *tasks, *how, *quick, "--out", str(out))
            made.append(out)
        made.append(self.agent_run(tasks[1]))
        return made

    def agent_run(self, task: str) -> Path:
        """An attempt as its record tells it, beside the results of its passes."""
        out = self.work / "agent"
        self.run("bench", task, "--passes", "bench/passes", "--quick", "--trials", "10", "--out", str(out / "best"))
        attempt = out / "attempts" / Path(task).name / "0"
        attempt.mkdir(parents=True)
        model = {"name": "a-model", "protocol": "open_ai", "base_url": "http://127.0.0.1/", "sampling": {}}
        limits = {"steps": 5, "seconds": 10.0, "call_seconds": 10.0}
        usage = {"input": 120, "output": 30}
        spent = {"steps": 2, "usage": usage, "context": 150, "cost": None, "seconds": 1.0}
        start = {"event": "start", "format": 1, "version": "0", "task": Path(task).name, "sample": Path(task).name,
                 "folder": "", "graphs": 1, "attempt": 0, "model": model, "limits": limits, "calls": "native",
                 "prompts": "", "time": 0.0}
        call = {"id": "1", "name": "check", "arguments": "{}"}
        events = [
            start,
            {"event": "message", "message": {"role": "user", "content": "Write <b>a pass</b>."}},
            {"event": "reply", "step": 1, "message": {"content": "I look first.", "tool_calls": [call]},
             "stop": "tool_calls", "usage": usage, "seconds": 0.5, "time": 0.0},
            {"event": "result", "step": 1, "index": 0, "id": "1", "tool": "check", "content": "It matches.",
             "seconds": 0.1, "time": 0.0},
            {"event": "reply", "step": 2, "message": {"content": "Done."}, "stop": "done", "usage": usage,
             "seconds": 0.5, "time": 0.0},
            {"event": "end", "reason": "submitted", "spent": spent, "time": 0.0},
        ]
        lines = "".join(json.dumps(event) + "\n" for event in events)
        (attempt / "trajectory.jsonl").write_text(lines, encoding="utf-8")
        (out / "settings.json").write_text("{}", encoding="utf-8")
        return out

    def site(self, runs: list[Path]) -> Path:
        out = self.work / "site"
        self.run("site", *map(str, runs), "--out", str(out), "--tasks", "bench/tasks",
                 "--dataset", "bench/set/evaluation.pnds")
        return out

    def serve(self, runs: list[Path]) -> Served:
        board = self.work / "board"
        self.run("leaderboard", "add", *map(str, runs), "--store", str(board))
        return Served(self.program, board)


class Served:
    """A server for as long as it is looked at."""

    def __init__(self, program: Path, board: Path) -> None:
        self.command = [str(program), "serve", "--store", str(board), "--listen", "127.0.0.1:0", "--rate", "0", "--json",
                        "--tasks", "bench/tasks", "--rejudge", "off", "--dataset", "bench/set/evaluation.pnds"]

    def __enter__(self) -> str:
        self.process = subprocess.Popen(self.command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        line = self.process.stdout.readline() if self.process.stdout else b""
        return f"http://{json.loads(line)['address']}"

    def __exit__(self, *_: object) -> None:
        self.process.terminate()
        self.process.wait(timeout=30)


class Check:
    def __init__(self, browser: Chromium, shots: Path | None) -> None:
        self.browser = browser
        self.shots = shots
        self.looked = 0
        self.problems: list[str] = []
        if shots:
            shots.mkdir(parents=True, exist_ok=True)

    def expect(self, what: str, holds: bool) -> None:
        if not holds:
            self.problems.append(what)

    @contextlib.contextmanager
    def page(self, url: str, scheme: str = "light", width: int = 1440, script: bool = True) -> Iterator[Page]:
        page = self.browser.page(scheme, width, script)
        try:
            page.goto(url)
            yield page
        except BrowserError as error:
            self.problems.append(f"{url}: {error}")
        finally:
            self.problems += [f"{url}: console: {complaint}" for complaint in page.complaints]
            page.close()

    def look(self, name: str, url: str) -> None:
        for scheme, width in LOOKS:
            with self.page(url, scheme, width) as page:
                self.looked += 1
                label = f"{name} ({scheme}, {width})"
                self.expect(f"{label}: it asks for more: {page.asked}", len(page.asked) == 1)
                wide = page.run("document.documentElement.scrollWidth - document.documentElement.clientWidth")
                self.expect(f"{label}: {wide} pixels too wide", wide <= 0)
                self.expect(f"{label}: no heading", page.run("document.querySelectorAll('h1').length") == 1)
                if self.shots:
                    page.shoot(self.shots / f"{name}-{scheme}-{width}.png", whole=True)

    def kinds(self, url: str) -> dict[str, str]:
        """One address of each kind of page, found by following links."""
        kinds = {"home": url}
        queue, seen = [url], set()
        # The last that fits counts.
        patterns = {"board": "/board/", "run": "/run/", "task": "/task/", "pass": "/pass/", "attempt": "/attempt/",
                    "compare": "/compare/", "matrix": "/matrix/", "dataset": "/dataset/", "graph": "/dataset/graph/", "reference": "/reference/",
                    "operations": "/dataset/operations/", "operation": "/dataset/operation/", "tasks": "/dataset/tasks/",
                    "task-graphs": "/dataset/task/", "structures": "/dataset/structures/",
                    "structure": "/dataset/structure/", "submissions": "/submissions/"}
        with self.page(url) as page:
            while queue and len(seen) < 120:
                url = queue.pop(0)
                if url in seen:
                    continue
                seen.add(url)
                page.goto(url)
                for link in page.run(LINKS):
                    fitting = [name for name, part in patterns.items() if part in link and "/api/" not in link]
                    if fitting:
                        kinds.setdefault(fitting[-1], link)
                        # Not every run has passes or attempts.
                        if fitting[-1] in ("board", "dataset", "operations", "run", "task"):
                            queue.append(link)
        return kinds

    def site(self, folder: Path) -> None:
        kinds = self.kinds((folder / "index.html").as_uri())
        wanted = {"home", "board", "run", "task", "pass", "attempt", "compare", "matrix", "dataset", "graph", "reference",
                  "operations", "operation", "tasks", "task-graphs", "structures", "structure"}
        self.expect(f"the site lacks {wanted - set(kinds)}", wanted <= set(kinds))
        for name, url in kinds.items():
            self.look(f"site-{name}", url)
        self.sorting(kinds["reference"])
        self.filtering(kinds["board"])
        self.searching(kinds["dataset"], "/dataset/operation/relu/index.html")
        self.replay(kinds["attempt"])

    def server(self, address: str) -> None:
        kinds = self.kinds(f"{address}/")
        for name, url in kinds.items():
            self.look(f"served-{name}", url)
        for script in (True, False):
            self.searching(kinds["dataset"], "/dataset/operation/relu/", script)
            with self.page(kinds["board"], script=script) as page:
                page.click("thead a", "run")
                self.expect(f"sorting (script {script})", page.wait_for(f"{SORTED} === 'run'"))
                page.goto(kinds["board"])
                page.click("form button", "Compare")
                is_there = page.wait_for("/\\/compare\\/\\w+\\/\\w+\\/$/.test(location.pathname)")
                self.expect(f"comparing (script {script})", is_there)
                page.goto(kinds["board"])
                for run in page.run("[...document.querySelectorAll('input[name=run]')].map((box) => box.value)"):
                    page.click(f"input[value='{run}']")
                page.click("form button", "The chosen runs, task by task")
                arrived = "/\\/matrix\\/(\\w+\\/){3}$/.test(location.pathname) && document.readyState === 'complete'"
                is_there = page.wait_for(arrived)
                self.expect(f"three runs side by side (script {script})", is_there)
                self.expect("no task in the matrix", page.visible(".cells") >= 9)

    def sorting(self, url: str) -> None:
        with self.page(url) as page:
            for order, first in [("the best", "Eager"), ("the worst", "Qwen3-4B")]:
                page.click("thead button", "AS")
                found = page.run("document.querySelector('tbody tr').cells[0].textContent.trim()")
                self.expect(f"sorting: {order} first: {found}", found == first)

    def searching(self, url: str, target: str, script: bool = True) -> None:
        with self.page(url, script=script) as page:
            page.fill("input[name=op]", "relu")
            page.click("form button", "Show")
            self.expect(f"searching (script {script}): not at {target}", page.wait_for_path(target))
            self.expect(f"searching (script {script}): no graphs", page.visible("#graphs tbody tr") > 0)
            if script:
                page.click("a", "Every operation")
                page.wait_for("document.querySelector('#names') !== null && document.readyState === 'complete'")
                everything = page.visible("#names tbody tr")
                page.fill("input[name=op]", "norm")
                some = page.visible("#names tbody tr")
                self.expect(f"searching: {some} of {everything} left", 0 < some < everything)

    def filtering(self, url: str) -> None:
        with self.page(url) as page:
            page.fill("input[data-filters]", "no such run")
            self.expect("filtering: rows are left", page.visible("#ranking tbody tr") == 0)
            page.fill("input[data-filters]", "")
            self.expect("filtering: no rows come back", page.visible("#ranking tbody tr") > 0)

    def replay(self, url: str) -> None:
        with self.page(url) as page:
            everything = page.visible(".step")
            page.click(".steps button", "First")
            self.expect("replay: one step", page.visible(".step") == 1)
            page.press("ArrowRight")
            self.expect("replay: two steps", page.wait_for(f"{STEPS} === 2"))
            page.click(".steps button", "All")
            self.expect("replay: all steps", page.visible(".step") == everything)


if __name__ == "__main__":
    sys.exit(main())
