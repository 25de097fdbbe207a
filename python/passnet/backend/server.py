"""The process that knows passes: one `passnet backend-server` for this process, asked through a pipe."""

from __future__ import annotations

import atexit
import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import torch

from passnet.worker.asking import Channel, PlanAsker
from passnet.worker.plans import Plan, Runner

# Of the session's messages.
VERSION = 1


class BackendError(RuntimeError):
    """What keeps the backend from working at all; the model runs as eager PyTorch."""


def find_program() -> str:
    """The `passnet` program: named by PASSNET_PROGRAM, beside this package, beside this Python, or on the path."""
    named = os.environ.get("PASSNET_PROGRAM")
    if named:
        return named
    places = [Path(__file__).parent.parent / "bin" / "passnet", Path(sys.executable).parent / "passnet"]
    for place in places:
        if place.is_file() and os.access(place, os.X_OK):
            return str(place)
    found = shutil.which("passnet")
    if found is None:
        raise BackendError("the `passnet` program is not on the path; PASSNET_PROGRAM names it")
    return found


class Server:
    """One resident process. Questions are asked one at a time."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.owner = os.getpid()
        command = [find_program(), "backend-server", "--python", sys.executable]
        try:
            self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        except OSError as error:
            raise BackendError(f"{command[0]}: {error}") from error
        self.channel = Channel(self.process.stdout, self.process.stdin, None)
        hello = self.ask({"call": "hello"})
        if hello.get("version") != VERSION:
            raise BackendError(f"{command[0]} speaks version {hello.get('version')}, not {VERSION}")
        if hello["runner"] is None:
            raise BackendError(f"{command[0]} has no plan runner; PASSNET_RUNNER names one")
        self.runner = Runner(hello["runner"])
        # The program's build and this machine's processor, in the words of a run's identity.
        self.identity: dict[str, Any] = hello.get("identity") or {}
        atexit.register(self.close)

    def ask(self, message: dict[str, Any]) -> dict[str, Any]:
        """The answer to a question; raises `BackendError` where the process says no, or is gone."""
        with self.lock:
            try:
                self.channel.write(message)
                answer, _ = self.channel.read()
            except (OSError, EOFError, ValueError) as error:
                code = self.process.poll()
                raise BackendError(f"the passnet process is gone ({code}): {error!r}") from error
        if "error" in answer:
            raise BackendError(answer["error"])
        return answer

    def plan(self, graph: int, site: int, arguments: tuple[Any, ...], device: torch.device) -> Plan | None:
        with self.lock:
            asker = PlanAsker(device, self.runner, self.channel, fills=True)
            if device.type != "cuda":
                return asker.ask({"graph": graph, "node": site}, arguments)
            with torch.cuda.device(device):
                return asker.ask({"graph": graph, "node": site}, arguments)

    def is_ours(self) -> bool:
        """A process that was forked has the pipe of its parent, and must not speak on it."""
        return self.owner == os.getpid() and self.process.poll() is None

    def close(self) -> None:
        if self.owner != os.getpid():
            return
        self.process.stdin.close()
        self.process.wait(timeout=10)


_server: Server | None = None
_starting = threading.Lock()


def server() -> Server:
    """The process's server, started when it is first needed."""
    global _server
    with _starting:
        if _server is None or not _server.is_ours():
            _server = Server()
        return _server
