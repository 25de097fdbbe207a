"""Times on a device that others may want to time on as well."""

from __future__ import annotations

import contextlib
import fcntl
import os
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch

from passnet.worker.clock import device_seconds

# Whether this thread has locked it already.
_this_thread = threading.local()


@contextlib.contextmanager
def alone(device: torch.device) -> Iterator[None]:
    """Threads and processes of one user time one after the other: a clock that others disturb chooses by chance."""
    if getattr(_this_thread, "is_timing", False):
        # A region that meets arguments of another kind is timed while its graph is.
        yield
        return
    name = f"passnet-timing-{os.getuid()}-{device.type}{device.index or 0}"
    try:
        lock = os.open(Path(tempfile.gettempdir()) / name, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    except OSError:
        # Without a place for the lock, times are less certain, and that is all.
        yield
        return
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        _this_thread.is_timing = True
        yield
    finally:
        _this_thread.is_timing = False
        os.close(lock)


def synchronize(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def seconds_of(way: Callable[[], Any], device: torch.device, calls: int, recorded: bool) -> float:
    """Seconds of one call. In a recording, launches cost nothing: there, the time of the device alone counts."""
    if device.type == "cuda" and recorded:
        return device_seconds(device, way)
    synchronize(device)
    started = time.perf_counter()
    for _ in range(calls):
        way()
    synchronize(device)
    return (time.perf_counter() - started) / calls
