"""Plans on request: the other side of a pipe makes them, this side loads them into the runner."""

import os
from typing import Any

import torch

from passnet.worker.frames import Buffer, read_frame, write_frame
from passnet.worker.plans import Plan, PlanError, RemoteError, Runner, check_devices, describe
from passnet.worker.tuning import time_candidates


class Channel:
    """Frames to and from the other side."""

    def __init__(self, reader: Any, writer: Any, shared: list[str] | None) -> None:
        self.reader, self.writer = reader, writer
        try:
            self.shared_in, self.shared_out = (os.open(path, os.O_RDWR) for path in shared) if shared else (None, None)
        except OSError:
            # The system hides other processes' files: pipes do.
            self.shared_in, self.shared_out = None, None

    def read(self, buffer: Buffer | None = None) -> tuple[dict[str, Any], memoryview]:
        return read_frame(self.reader, buffer, self.shared_in)

    def write(self, message: dict[str, Any], parts: list[memoryview] | None = None) -> None:
        write_frame(self.writer, message, parts, self.shared_out)


class PlanAsker:
    """Asks for the plans of one device. With `fills`, memory that a kernel may read before it is written holds the same bytes
    in every call."""

    def __init__(self, device: torch.device, runner: Runner | None, channel: Channel, fills: bool = False) -> None:
        self.device, self.runner, self.channel, self.fills = device, runner, channel, fills

    def ask(self, place: dict[str, Any], arguments: tuple[Any, ...]) -> Plan | None:
        """The plan for a place of a graph and arguments like these; `None` where the other side wants to run it itself.
        Where it leaves a configuration open, it sends one plan for each, and what they take is told with the next
        question."""
        described = [describe(argument) for argument in arguments]
        question: dict[str, Any] = {**place, "arguments": described}
        while True:
            self.channel.write({"plan": question})
            answer, data = self.channel.read()
            if "error" in answer:
                raise RemoteError(answer["kind"], answer["error"])
            if answer.get("remote"):
                return None
            if "candidates" not in answer:
                return self.load(answer, bytes(data), described)
            check_devices(arguments, self.device)
            plans = [self.load_candidate(entry, data, described) for entry in answer["candidates"]]
            question["timings"] = time_candidates(plans, arguments, answer["written"], self.device, answer["seconds"])

    def load_candidate(self, entry: dict[str, Any] | None, data: memoryview, described: list[Any]) -> Plan | str | None:
        if entry is None:
            return None
        if "skipped" in entry:
            return entry["skipped"]
        first, length = entry["code"]
        try:
            return self.load(entry, bytes(data[first : first + length]), described)
        except PlanError as error:
            # A kernel that needs more than the device has; others may do.
            return str(error)

    def load(self, answer: dict[str, Any], cubins: bytes, described: list[Any]) -> Plan:
        if self.runner is None:
            raise RemoteError("machine", "the worker was started without the native runner")
        is_cuda = self.device.type == "cuda"
        handle = self.runner.load(answer["text"].encode(), cubins if is_cuda else None)
        filled = frozenset(answer["reads"] if self.fills else ())
        return Plan(self.runner, handle, answer["plan"], self.device, described, answer["gives_tuple"], filled)
