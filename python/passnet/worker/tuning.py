"""Candidates of a tuned kernel, timed on copies of what the kernel may write. Which one is taken is decided elsewhere."""

import time
from typing import Any

import torch

from passnet.worker.clock import device_seconds
from passnet.worker.plans import Plan
from passnet.worker.tensors import unexpanded

# Calls of each candidate at the most.
CALLS = 25
# More than a device keeps in its cache: every candidate finds it as cold.
FLUSHED_BYTES = 256 << 20


def time_candidates(
    plans: list[Plan | str | None],
    arguments: tuple[Any, ...],
    written: list[int],
    device: torch.device,
    limit: float,
) -> list[float | str | None]:
    """Milliseconds of each plan, in turns, the median of its calls; a text says why one cannot run, None that there was
    no time for it within so many seconds."""
    until = time.monotonic() + limit
    flushed = torch.empty(FLUSHED_BYTES, dtype=torch.uint8, device=device) if device.type == "cuda" else None
    times: list[list[float]] = [[] for _ in plans]
    for _ in range(CALLS):
        for plan, seconds in zip(plans, times, strict=True):
            if plan is None or isinstance(plan, str):
                continue
            if time.monotonic() > until:
                break
            if flushed is not None:
                flushed.zero_()
            seconds.append(one_call(plan, copies(arguments, written), device))
    # The first call of a kernel is another one: its code is loaded then.
    return [
        plan if plan is None or isinstance(plan, str) else milliseconds(seconds[1:] or seconds)
        for plan, seconds in zip(plans, times, strict=True)
    ]


def one_call(plan: Plan, arguments: tuple[Any, ...], device: torch.device) -> float:
    tensors = plan.place(arguments)
    return device_seconds(device, lambda: plan.launch(tensors))


def milliseconds(seconds: list[float]) -> float | None:
    if not seconds:
        return None
    return sorted(seconds)[len(seconds) // 2] * 1e3


def copies(arguments: tuple[Any, ...], written: list[int]) -> tuple[Any, ...]:
    """The arguments, with memory of their own where a candidate may write."""
    return tuple(
        copy_of(argument) if index in written and isinstance(argument, torch.Tensor) else argument
        for index, argument in enumerate(arguments)
    )


def copy_of(tensor: torch.Tensor) -> torch.Tensor:
    """Laid out as the tensor is, whatever its strides."""
    copy = torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype, device=tensor.device)
    unexpanded(copy).copy_(unexpanded(tensor))
    return copy
