"""A worker on a node: the `passnet` program, kept running, given one unit at a time."""

from __future__ import annotations

import collections
import os
import shutil
import signal
import socket
import subprocess
import threading
from typing import Any

from . import frames

# Lines of what a program said last that go into the reason of its death.
_LAST_LINES = 3


class WorkerDied(Exception):
    """The program ended while it had a unit, or before it could take one."""


def program(named: str) -> str:
    """The program on this node: the one that its environment names, the driver's path, or any of the path."""
    for path in (os.environ.get("PASSNET_PROGRAM"), named, shutil.which("passnet")):
        if path and os.access(path, os.X_OK):
            return path
    raise FileNotFoundError(
        f"there is no `passnet` here: not at {named}, not in PATH, and PASSNET_PROGRAM names none"
    )


class Worker:
    """Runs as an actor; dies with its program, so that a fresh one takes its place."""

    def __init__(self, named: str, arguments: list[str]) -> None:
        self.process = subprocess.Popen(
            [program(named), "cluster-worker"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            # The driver's terminal is not ours: nothing that is typed there may end a worker.
            start_new_session=True,
        )
        self.last: collections.deque[str] = collections.deque(maxlen=_LAST_LINES)
        self.listener = threading.Thread(target=self._listen, daemon=True)
        self.listener.start()
        self.hello_message, _ = self._ask({"arguments": arguments}, b"")

    def hello(self) -> dict[str, Any]:
        return self.hello_message

    def perform(self, message: dict[str, Any], payload: bytes) -> tuple[dict[str, Any], bytes]:
        return self._ask(message, payload)

    def _listen(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.last.append(line.decode(errors="replace").rstrip())

    def _ask(self, message: dict[str, Any], payload: bytes) -> tuple[dict[str, Any], bytes]:
        assert self.process.stdin is not None and self.process.stdout is not None
        answer = None
        try:
            frames.write(self.process.stdin, message, payload)
            answer = frames.read(self.process.stdout)
        except (OSError, ValueError):
            pass  # it is gone, or says what is no message
        if answer is None:
            raise WorkerDied(self._reason())
        return answer

    def _reason(self) -> str:
        try:
            code = self.process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            code = self.process.wait()
        self.listener.join(timeout=1)
        how = f"exit code {code}" if code >= 0 else f"signal {signal.Signals(-code).name}"
        return f"the worker ended ({how}) on {socket.gethostname()}: {' | '.join(self.last)}"
