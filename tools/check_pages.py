#!/usr/bin/env python3
"""Looks at the leaderboard's pages in a browser.

    tools/check_pages.py PASSNET [--shots DIR] [--runs RUN...]

Makes runs, a site and a server, opens every kind of page in light and dark, 390 and 1,440 pixels wide, and tries sorting,
filtering, searching, comparing and replaying. A message on the console, a request that leaves the page, or text that is
wider than the window is a failure. Needs chromium and playwright; exit code 77 says that one is missing.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
MISSING = 77
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
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        print("skipped: this Python has no playwright")
        return MISSING
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        work = Path(folder)
        passnet = Passnet(options.passnet.resolve(), work)
        runs = [run.resolve() for run in options.runs] or passnet.make_runs()
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        check = Check(browser, options.shots)
        try:
            site = passnet.site(runs)
            check.site(site)
            with passnet.serve(runs) as address:
                check.server(address)
        finally:
            browser.close()
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
        for name, how in [("passes", ["--passes", "bench/passes"]), ("eager", ["--compiler", "eager"])]:
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
    def __init__(self, browser: object, shots: Path | None) -> None:
        self.browser = browser
        self.shots = shots
        self.looked = 0
        self.problems: list[str] = []
        if shots:
            shots.mkdir(parents=True, exist_ok=True)

    def problem(self, what: str) -> None:
        self.problems.append(what)

    def expect(self, what: str, holds: bool) -> None:
        if not holds:
            self.problem(what)

    def page(self, scheme: str = "light", width: int = 1440, script: bool = True):
        context = self.browser.new_context(color_scheme=scheme, viewport={"width": width, "height": 900},
                                           java_script_enabled=script)
        page = context.new_page()
        page.on("console", lambda message: self.problem(f"{page.url}: console: {message.text}"))
        page.on("pageerror", lambda error: self.problem(f"{page.url}: {error}"))
        return page

    def look(self, name: str, url: str) -> None:
        for scheme, width in LOOKS:
            page = self.page(scheme, width)
            asked: list[str] = []
            page.on("request", lambda request: asked.append(request.url))
            page.goto(url)
            self.looked += 1
            label = f"{name} ({scheme}, {width})"
            self.expect(f"{label}: it asks for more: {asked}", len(asked) == 1)
            wide = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
            self.expect(f"{label}: {wide} pixels too wide", wide <= 0)
            self.expect(f"{label}: no heading", page.locator("h1").count() == 1)
            if self.shots:
                page.screenshot(path=str(self.shots / f"{name}-{scheme}-{width}.png"), full_page=width == 390)
            page.context.close()

    def kinds(self, page: object) -> dict[str, str]:
        """One address of each kind of page, found by following links."""
        kinds = {"home": page.url}
        queue, seen = [page.url], set()
        patterns = {"board": "/board/", "run": "/run/", "task": "/task/", "pass": "/pass/", "attempt": "/attempt/",
                    "compare": "/compare/", "dataset": "/dataset/", "graph": "/dataset/graph/", "reference": "/reference/",
                    "operations": "/dataset/operations/", "operation": "/dataset/operation/", "tasks": "/dataset/tasks/",
                    "task-graphs": "/dataset/task/", "structures": "/dataset/structures/",
                    "structure": "/dataset/structure/", "submissions": "/submissions/"}
        while queue and len(seen) < 120:
            url = queue.pop(0)
            if url in seen:
                continue
            seen.add(url)
            page.goto(url)
            links = page.eval_on_selector_all("a[href]", "all => all.map(a => a.href.split('#')[0].split('?')[0])")
            for link in links:
                kind = None
                for name, part in patterns.items():
                    if part in link:
                        kind = name
                if kind and "/api/" not in link:
                    kinds.setdefault(kind, link)
                    # Not every run has passes or attempts.
                    if kind in ("board", "dataset", "operations", "run", "task"):
                        queue.append(link)
        return kinds

    def site(self, folder: Path) -> None:
        page = self.page()
        page.goto((folder / "index.html").as_uri())
        kinds = self.kinds(page)
        wanted = {"home", "board", "run", "task", "pass", "attempt", "compare", "dataset", "graph", "reference",
                  "operations", "operation", "tasks", "task-graphs", "structures", "structure"}
        self.expect(f"the site lacks {wanted - set(kinds)}", wanted <= set(kinds))
        for name, url in kinds.items():
            self.look(f"site-{name}", url)
        self.sorting(kinds["reference"])
        self.filtering(kinds["board"])
        self.searching(kinds["dataset"], "/dataset/operation/relu/index.html")
        self.replay(kinds.get("attempt"))

    def server(self, address: str) -> None:
        page = self.page()
        page.goto(f"{address}/")
        kinds = self.kinds(page)
        for name, url in kinds.items():
            self.look(f"served-{name}", url)
        for script in (True, False):
            self.searching(kinds["dataset"], "/dataset/operation/relu/", script)
            page = self.page(script=script)
            page.goto(kinds["board"])
            page.get_by_role("link", name="run", exact=True).click()
            up = page.locator("th[aria-sort]").first.inner_text()
            self.expect(f"sorting (script {script}): {up}", up.startswith("run"))
            page.goto(kinds["board"])
            button = page.get_by_role("button", name="Compare")
            if button.count():
                button.click()
                page.wait_for_url("**/compare/*/*/")
                self.expect(f"comparing (script {script})", page.locator("h1").count() == 1)
            page.context.close()

    def sorting(self, url: str) -> None:
        page = self.page()
        page.goto(url)
        first = lambda: page.locator("tbody tr").first.inner_text()
        page.get_by_role("button", name="AS", exact=True).click()
        self.expect("sorting: the best first", first().startswith("Eager"))
        page.get_by_role("button", name="AS", exact=True).click()
        self.expect("sorting: the worst first", first().startswith("Qwen3-4B\t"))
        page.context.close()

    def searching(self, url: str, target: str, script: bool = True) -> None:
        page = self.page(script=script)
        page.goto(url)
        page.locator("input[name=op]").fill("relu")
        page.get_by_role("button", name="Show").click()
        page.wait_for_url(f"**{target}")
        self.expect(f"searching (script {script}): no graphs", page.locator("#graphs tbody tr").count() > 0)
        if script:
            page.get_by_role("link", name="Every operation").click()
            page.locator("input[name=op]").fill("norm")
            names = page.locator("#names tbody tr:visible th").all_inner_texts()
            self.expect(f"searching: {names}", bool(names) and all("norm" in name for name in names))
        page.context.close()

    def filtering(self, url: str) -> None:
        page = self.page()
        page.goto(url)
        page.locator("input[data-filters]").fill("no such run")
        self.expect("filtering: rows are left", page.locator("#ranking tbody tr:visible").count() == 0)
        page.locator("input[data-filters]").fill("")
        self.expect("filtering: no rows come back", page.locator("#ranking tbody tr:visible").count() > 0)
        page.context.close()

    def replay(self, url: str | None) -> None:
        if url is None:
            return
        page = self.page()
        page.goto(url)
        visible = lambda: page.locator(".step:visible").count()
        everything = visible()
        page.get_by_role("button", name="First").click()
        self.expect("replay: one step", visible() == 1)
        page.keyboard.press("ArrowRight")
        self.expect("replay: two steps", visible() == 2)
        page.get_by_role("button", name="All").click()
        self.expect("replay: all steps", visible() == everything)
        page.context.close()


if __name__ == "__main__":
    sys.exit(main())
