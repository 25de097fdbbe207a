"""How long a device is at work."""

import time
from typing import Any, Callable

import torch

# About half a millisecond: all launches of a call are queued before the first begins.
SLEEP_CYCLES = 1_000_000


def device_seconds(device: torch.device, work: Callable[[], Any]) -> float:
    """Seconds of the device for what `work` starts; gaps between launches do not count. On a CPU, just seconds."""
    if device.type != "cuda":
        started = time.perf_counter()
        work()
        return time.perf_counter() - started
    # A kernel that keeps the device busy until all launches are queued.
    torch.cuda._sleep(SLEEP_CYCLES)
    events = [torch.cuda.Event(enable_timing=True) for _ in range(2)]
    events[0].record()
    work()
    events[1].record()
    torch.cuda.synchronize(device)
    return events[0].elapsed_time(events[1]) / 1e3
