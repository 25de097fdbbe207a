#!/usr/bin/env python3
"""Makes the pictures of docs/leaderboard.md, from runs that it makes first.

    tools/leaderboard_pictures.py PASSNET [--tasks N] [--seconds S] [--work DIR] [--out docs]

PASSNET is a release build, on a machine that does nothing else: the pictures show real speed-ups. Four runs of the first N
bundled tasks are made (the bundled passes, what the solver writes, the engine's own joining of operations, eager against
itself), then their site, then a picture of the ranking, of a task and of all runs task by task. With `--work` runs that are
there already are used again. Needs chromium; exit code 77 says that there is none.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from chromium import Chromium

ROOT = Path(__file__).resolve().parents[1]
MISSING = 77
WIDTH, HEIGHT = 1200, 860
# The task whose page is shown; it is always among those that are run.
SHOWN = "swiglu"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("passnet", type=Path, help="the program")
    parser.add_argument("--tasks", type=int, default=12, metavar="N", help="bundled tasks to run")
    parser.add_argument("--seconds", default="0.4", metavar="S", help="seconds of timing for one graph, about")
    parser.add_argument("--quick", action="store_true", help="without extreme inputs and watched kernels, to try this out")
    parser.add_argument("--work", type=Path, help="where runs and the site go, and stay")
    parser.add_argument("--out", type=Path, default=ROOT / "docs", help="where the pictures go")
    options = parser.parse_args()
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        print("skipped: no chromium on the path")
        return MISSING
    with tempfile.TemporaryDirectory() as temporary:
        work = (options.work or Path(temporary)).resolve()
        work.mkdir(parents=True, exist_ok=True)
        maker = Maker(options.passnet.resolve(), work, options.seconds, options.quick)
        site = maker.site(maker.runs(chosen(options.tasks)))
        options.out.mkdir(parents=True, exist_ok=True)
        with Chromium(chromium) as browser:
            for path in pictures(browser, site, options.out):
                print(path)
    return 0


def chosen(count: int) -> list[str]:
    names = sorted(path.name for path in (ROOT / "bench/tasks").iterdir() if path.is_dir())
    names.remove(SHOWN)
    return [f"bench/tasks/{name}" for name in [SHOWN, *names][:max(count, 1)]]


class Maker:
    """The program, and what it makes."""

    def __init__(self, program: Path, work: Path, seconds: str, quick: bool) -> None:
        self.program = program
        self.work = work
        self.how = ["--seconds", seconds, *(["--quick"] if quick else [])]

    def passnet(self, *arguments: str) -> None:
        print(f"passnet {' '.join(arguments)}", flush=True)
        done = subprocess.run([str(self.program), *arguments], cwd=ROOT, stdout=subprocess.DEVNULL, check=False)
        # Exit code 1 says that something under test failed, which a run may.
        if done.returncode not in (0, 1):
            raise SystemExit(f"passnet ended with {done.returncode}")

    def runs(self, tasks: list[str]) -> list[Path]:
        """All judged by one command with the same options: runs of another depth would be another ranking."""
        solved = self.work / "solved"
        if not (self.work / "solver").exists():
            self.passnet("solve", *tasks, "--no-bench", "--out", str(solved))
        made = []
        for name, what in [
            ("bundled passes", ["--passes", "bench/passes"]),
            ("solver", ["--passes", str(solved / "passes")]),
            ("joined operations", ["--compiler", "joined"]),
            ("eager again", ["--compiler", "eager"]),
        ]:
            folder = self.work / name
            if not folder.exists():
                self.passnet("bench", *tasks, *what, *self.how, "--out", str(folder))
            made.append(folder)
        return made

    def site(self, runs: list[Path]) -> Path:
        out = self.work / "site"
        shutil.rmtree(out, ignore_errors=True)
        self.passnet("site", *map(str, runs), "--out", str(out), "--tasks", "bench/tasks", "--dataset",
                     "bench/set/evaluation.pnds", "--author", "the maintainers")
        return out


def pictures(browser: Chromium, site: Path, out: Path) -> list[Path]:
    page = browser.page(width=WIDTH, height=HEIGHT)
    page.goto((site / "index.html").as_uri())

    def follow(part: str, text: str | None = None) -> None:
        """To the first link that leads to such a page, with this text where one is given."""
        wanted = "true" if text is None else f"a.textContent.trim() === '{text}'"
        found = f"[...document.querySelectorAll('a[href*=\"{part}\"]')].find((a) => {wanted})"
        page.goto(page.run(f"{found}.href"))

    made = []

    def shoot(name: str) -> None:
        path = out / f"leaderboard-{name}.png"
        page.shoot(path, whole=False)
        made.append(path)

    follow("board/")
    shoot("ranking")
    follow("matrix/")
    shoot("matrix")
    page.goto((site / "index.html").as_uri())
    follow("board/")
    follow("run/", "bundled passes")
    follow("/task/", SHOWN)
    shoot("task")
    page.close()
    return made


if __name__ == "__main__":
    sys.exit(main())
