"""Many models, each in a process of its own that is forked from a warm parent.

The parent has PyTorch and dynamo loaded and never runs a model's code, so a model that raises, hangs, crashes or eats
memory costs itself only. A finished folder is moved to its place in one step and then recorded; a kill at any moment
loses at most the models in flight, and the next run continues.
"""

from __future__ import annotations

import ctypes
import gc
import json
import os
import resource
import select
import shutil
import signal
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .errors import CaptureError
from .folder import MARKER
from .job import failure
from .job import run as run_job
from .model import Entry, Model
from .results import Results

_PARTIAL = ".partial"
_LONGEST_ANSWER = 1 << 20
_POLL_SECONDS = 0.05
# A core that is not given for so many limits never is: a model may not hold the run for ever.
_MOST_WAITED = 10
_PR_SET_PDEATHSIG = 1


@dataclass(frozen=True)
class Limits:
    """What one model may use."""

    # Without those it waited for a core: on a machine that others use, a model is as slow as they are busy.
    seconds: float = 240.0
    memory: int = 6 << 30
    # Address space: unwritten weights count here, and only here.
    address_space: int = 8 << 40


@dataclass(frozen=True)
class Plan:
    """What to do with all of them."""

    out: Path
    jobs: int = 1
    limits: Limits = field(default_factory=Limits)
    # No model is begun after so many seconds; those in flight are stopped, and not recorded.
    seconds: float | None = None
    retry_failed: bool = False
    dynamic: bool = False
    fullgraph: bool = False
    # Nothing is begun while this file exists.
    pause_file: Path | None = None


@dataclass
class _Child:
    entry: Entry
    pid: int
    pipe: int
    folder: Path
    begun: float
    answer: bytes = b""
    stage: str = "starting"
    peak: int = 0


Build = Callable[[Entry], Callable[[], Model]]
Job = Callable[..., dict[str, Any]]
Report = Callable[[dict[str, Any], int, int], None]


class Pool:
    def __init__(
        self, plan: Plan, build: Build, report: Report = lambda *_: None, job: Job = run_job
    ) -> None:
        self.plan = plan
        self.build = build
        self.report = report
        self.job = job
        plan.out.mkdir(parents=True, exist_ok=True)
        self.results = Results(plan.out / "results.jsonl")
        self.children: list[_Child] = []
        self.done = 0

    def run(self, entries: Iterable[Entry]) -> None:
        pending = self._to_do(list(entries))
        total = len(pending)
        shutil.rmtree(self.plan.out / _PARTIAL, ignore_errors=True)
        start = time.monotonic()
        gc.collect()
        gc.freeze()
        pending.reverse()
        try:
            while pending or self.children:
                if self.plan.seconds is not None and time.monotonic() - start > self.plan.seconds:
                    break
                paused = self.plan.pause_file is not None and self.plan.pause_file.exists()
                while pending and not paused and len(self.children) < self.plan.jobs:
                    self._begin(pending.pop())
                self._wait(total)
        finally:
            for child in self.children:
                self._end(child)
            self.children.clear()
            shutil.rmtree(self.plan.out / _PARTIAL, ignore_errors=True)

    def place(self, entry: Entry) -> Path:
        return self.plan.out / "samples" / entry.family / entry.name

    def _to_do(self, entries: list[Entry]) -> list[Entry]:
        left = []
        for entry in entries:
            known = self.results.by_id.get(entry.id)
            if known is None and self.place(entry).exists():
                # Moved to its place, and killed before it was recorded.
                graphs = sum(1 for _ in self.place(entry).rglob(MARKER))
                self._record(entry, {"outcome": "captured", "graphs": graphs}, 0.0, 0)
            elif known is None or (self.plan.retry_failed and known.get("outcome") != "captured"):
                left.append(entry)
        return left

    def _record(self, entry: Entry, answer: dict[str, Any], seconds: float, peak: int) -> dict[str, Any]:
        facts = {"id": entry.id, "source": entry.source, "seconds": round(seconds, 2), "peak_mb": peak >> 20}
        self.results.append({**answer, **facts})
        return self.results.by_id[entry.id]

    def _begin(self, entry: Entry) -> None:
        folder = self.plan.out / _PARTIAL / entry.family / entry.name
        ours, theirs = os.pipe()
        sys.stdout.flush()
        sys.stderr.flush()
        parent = os.getpid()
        pid = os.fork()
        if pid == 0:
            status = 1
            try:
                os.close(ours)
                _isolate(self.plan.limits, parent)
                self._work(entry, folder, theirs)
                status = 0
            finally:
                os._exit(status)
        os.close(theirs)
        os.set_blocking(ours, False)
        self.children.append(_Child(entry, pid, ours, folder, time.monotonic()))

    def _work(self, entry: Entry, folder: Path, pipe: int) -> None:
        """In the child."""

        def say(message: dict[str, Any]) -> None:
            os.write(pipe, json.dumps(message).encode() + b"\n")

        try:
            build = self.build(entry)
            answer = self.job(
                build,
                folder,
                {"source": entry.source, "model_name": entry.name},
                dynamic=self.plan.dynamic,
                fullgraph=self.plan.fullgraph,
                stage=lambda name: say({"stage": name}),
            )
        except CaptureError as error:
            answer = failure(error.kind, error.message)
        except SystemExit as error:
            answer = failure("factory raised", f"SystemExit: {error}")
        except BaseException as error:  # noqa: BLE001 - whatever a factory does is its own failure
            answer = failure("factory raised", f"{type(error).__name__}: {error}")
        say(answer)

    def _wait(self, total: int) -> None:
        pipes = [child.pipe for child in self.children]
        ready = select.select(pipes, [], [], _POLL_SECONDS)[0] if pipes else []
        if not pipes:
            time.sleep(_POLL_SECONDS)
        still: list[_Child] = []
        for child in self.children:
            answer = self._look_at(child, child.pipe in ready)
            if answer is None:
                still.append(child)
                continue
            self._end(child)
            answer = self._keep(child, answer)
            record = self._record(child.entry, answer, time.monotonic() - child.begun, child.peak)
            self.done += 1
            self.report(record, self.done, total)
        self.children = still

    def _look_at(self, child: _Child, readable: bool) -> dict[str, Any] | None:
        """The model's result once there is one, be it that it broke a limit."""
        if readable:
            answer = self._read(child)
            if answer is not None:
                return answer
        child.peak = max(child.peak, _resident(child.pid))
        limits = self.plan.limits
        if child.peak > limits.memory:
            return failure("memory limit", f"more than {limits.memory >> 20} MiB while {child.stage}")
        waited = min(_waited(child.pid), _MOST_WAITED * limits.seconds)
        if time.monotonic() - child.begun - waited > limits.seconds:
            return failure("time limit", f"more than {limits.seconds:.0f} s while {child.stage}")
        return None

    def _read(self, child: _Child) -> dict[str, Any] | None:
        chunk = os.read(child.pipe, 65_536)
        child.answer += chunk
        for line in child.answer.split(b"\n"):
            try:
                message = json.loads(line)
            except ValueError:
                continue
            if "stage" in message:
                child.stage = message["stage"]
            elif "outcome" in message:
                return message
        if not chunk or len(child.answer) > _LONGEST_ANSWER:
            return failure("crashed", f"the process ended without an answer while {child.stage}")
        return None

    def _end(self, child: _Child) -> None:
        """Ends the model's process and everything it started."""
        for kill, target in ((os.killpg, child.pid), (os.kill, child.pid)):
            try:
                kill(target, signal.SIGKILL)
            except ProcessLookupError:
                pass
        os.waitpid(child.pid, 0)
        os.close(child.pipe)

    def _keep(self, child: _Child, answer: dict[str, Any]) -> dict[str, Any]:
        """Moves a finished folder to its place; refuses to touch what is there."""
        if answer["outcome"] != "captured":
            shutil.rmtree(child.folder, ignore_errors=True)
            return answer
        place = self.place(child.entry)
        if place.exists():
            return failure("exists", f"{place} is there already")
        place.parent.mkdir(parents=True, exist_ok=True)
        os.rename(child.folder, place)
        return answer


def _isolate(limits: Limits, parent: int) -> None:
    """A session of its own, no terminal, no output, no life after the parent."""
    os.setsid()
    _keep_priority()
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nothing, stream)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_AS, (limits.address_space, limits.address_space))
    sys.setrecursionlimit(20_000)


def _keep_priority() -> None:
    """A new session is a new scheduling group on Linux, which would forget how nice the parent is."""
    try:
        Path("/proc/self/autogroup").write_text(str(os.nice(0)))
    except OSError:
        pass  # no such groups here


def _waited(pid: int) -> float:
    """Seconds that a process was ready to run while others had the cores; none where the kernel does not count them."""
    try:
        return int(Path(f"/proc/{pid}/schedstat").read_text().split()[1]) / 1e9
    except (OSError, ValueError, IndexError):
        return 0.0


def _resident(pid: int) -> int:
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    except (OSError, ValueError, IndexError):
        return 0
    return pages * resource.getpagesize()
