"""The worker's loop: one request, one reply, until the other side closes the pipe."""

import argparse
import gc
import importlib.metadata
import os
import platform
import sys
import traceback
from typing import Any

import torch

from passnet.worker.asking import Channel, PlanAsker
from passnet.worker.contents import HIGHEST, Ladder, first_changed
from passnet.worker.frames import VERSION, BrokenFrame, Buffer
from passnet.worker.graphs import Graph
from passnet.worker.plans import LaunchError, Plan, PlanError, RemoteError, RemotePass, Runner
from passnet.worker.rates import copy_seconds, flops_per_second
from passnet.worker.tensors import DTYPES, from_wire, still_holds, to_wire, to_wire_argument


class Worker:
    def __init__(self, device: torch.device, runner: Runner | None, channel: Channel) -> None:
        self.device, self.runner, self.channel = device, runner, channel
        self.graphs: dict[int, Graph] = {}
        # What the candidate gave in timed calls, by the number of the content, until eager has been called on it.
        self.waiting: dict[int, list[torch.Tensor]] = {}
        # The outputs that differed most: how much, the number of the content, eager's, the candidate's.
        self.doubtful: tuple[int, int, list[torch.Tensor], list[torch.Tensor]] | None = None
        self.ladder = Ladder({}, DTYPES)

    def serve(self) -> None:
        buffer = Buffer()
        while True:
            try:
                request, data = self.channel.read(buffer)
            except EOFError:
                return
            parts: list[memoryview] = []
            fatal = False
            try:
                call = CALLS.get(request.get("call"))
                if call is None:
                    raise ValueError(f"there is no call {request.get('call')!r}")
                reply = {"ok": True, **call(self, request, data, parts)}
            except (BrokenFrame, EOFError, OSError):
                raise
            except BaseException as error:  # noqa: BLE001 - whatever a graph raises is its result
                parts = []
                kind, fatal = classify(error)
                reply = {"ok": False, "kind": kind, "message": message_of(error), "line": line_of(error)}
            reply["id"] = request.get("id")
            if fatal:
                reply["fatal"] = True
            self.channel.write(reply, parts)
            if fatal:
                # The CUDA context is lost: only a new process can go on.
                os._exit(3)

    def ask_for_plan(self, graph: int, node: int, arguments: tuple[Any, ...]) -> Plan | RemotePass:
        """In the middle of a call: the other side makes plans, or runs what cannot become one."""
        asker = PlanAsker(self.device, self.runner, self.channel)
        remote = RemotePass(lambda arguments: self.call_sandboxed(graph, node, arguments))
        return asker.ask({"graph": graph, "node": node}, arguments) or remote

    def call_sandboxed(self, graph: int, node: int, arguments: tuple[Any, ...]) -> Any:
        """A wrapper that the other side runs in its sandbox; what comes back was looked at there."""
        parts: list[memoryview] = []
        described = [to_wire_argument(argument, parts) for argument in arguments]
        self.channel.write({"remote": {"graph": graph, "node": node, "arguments": described}}, parts)
        answer, data = self.channel.read()
        if "error" in answer:
            raise RemoteError(answer["kind"], answer["error"])
        outputs = [from_wire(entry, data, self.device) for entry in answer["outputs"]]
        return outputs[0] if len(outputs) == 1 else tuple(outputs)

    def hello(self, request: dict, data: memoryview, parts: list[memoryview]) -> dict:
        if request.get("version") != VERSION:
            raise ValueError(f"protocol version {request.get('version')} is not {VERSION}")
        cuda = self.device.type == "cuda"
        return {
            "version": VERSION,
            "shared_memory": self.channel.shared_in is not None,
            "python": platform.python_version(),
            "torch": torch.__version__,
            "triton": installed_version("triton"),
            "cuda": torch.version.cuda,
            "device": torch.cuda.get_device_name(self.device) if cuda else platform.processor() or "cpu",
            "capability": list(torch.cuda.get_device_capability(self.device)) if cuda else None,
            "threads": torch.get_num_threads(),
        }

    def load(self, request: dict, data: memoryview, parts: list[memoryview]) -> dict:
        index = request["graph"]
        ask = lambda node, arguments: self.ask_for_plan(index, node, arguments)  # noqa: E731
        self.graphs[index] = Graph(
            request["text"],
            request["plans"],
            request["compiler"],
            self.device,
            ask,
            self.runner,
            request["writes_inputs"],
        )
        return {}

    def drop(self, request: dict, data: memoryview, parts: list[memoryview]) -> dict:
        self.graphs.pop(request["graph"], None)
        return {}

    def run(self, request: dict, data: memoryview, parts: list[memoryview]) -> dict:
        """Runs on inputs that come along; gives outputs, which of them are views of inputs, and changed inputs."""
        graph = self.graphs[request["graph"]]
        inputs = self.inputs(request["inputs"], data)
        outputs = graph.run(inputs, request["seed"])
        at = 0
        described, changed = [], []
        storages: dict[int, int] = {}
        for output in outputs:
            entry = to_wire(output, parts, at)
            entry["input"] = graph.alias(output, inputs)
            entry["offset"] = output.storage_offset()
            entry["storage"] = storages.setdefault(storage_of(output), len(storages))
            at += entry["bytes"][1]
            described.append(entry)
        for index, (entry, value) in enumerate(zip(request["inputs"], inputs, strict=True)):
            if isinstance(value, torch.Tensor) and not still_holds(value, entry, data):
                entry = to_wire(value, parts, at)
                at += entry["bytes"][1]
                changed.append({"index": index, **entry})
        return {"outputs": described, "changed": changed}

    def stage(self, request: dict, data: memoryview, parts: list[memoryview]) -> dict:
        """Keeps one draw of inputs here."""
        graph = self.graphs[request["graph"]]
        graph.draws[request["draw"]] = self.inputs(request["inputs"], data)
        self.ladder = Ladder(request["tolerances"], DTYPES)
        self.waiting.clear()
        self.doubtful = None
        return {}

    def calls(self, request: dict, data: memoryview, parts: list[memoryview]) -> dict:
        """Timed calls of several graphs in the order given, each on a content of its own."""
        staged = self.graphs[request["staged"]]
        seconds, compared = [], []
        gc.disable()
        try:
            for turn in request["turns"]:
                took, found = self.turn(turn, staged, data, request["seed"])
                seconds.append(took)
                compared.append(found)
        finally:
            gc.enable()
        return {"seconds": seconds, "compared": compared}

    def turn(self, turn: dict, staged: Graph, data: memoryview, seed: int) -> tuple[float, dict | None]:
        graph, number = self.graphs[turn["graph"]], turn["number"]
        given = self.inputs(turn["content"]["inputs"], data) if "inputs" in turn["content"] else None
        inputs = staged.content(turn["content"], given)
        seconds, outputs = graph.timed_call(inputs, seed)
        if staged.writes_inputs:
            outputs = outputs + [value for value in inputs if isinstance(value, torch.Tensor)]
        if turn["is_candidate"]:
            self.waiting[number] = outputs
            if not staged.writes_inputs:
                changed = first_changed(inputs, staged.content(turn["content"], given))
                return seconds, None if changed is None else {"input_changed": changed}
            return seconds, None
        candidate = self.waiting.pop(number, None)
        if candidate is None or turn["level"] is None:
            return seconds, None
        return seconds, self.compare(number, turn["level"], outputs, candidate)

    def compare(self, number: int, level: int, eager: list[torch.Tensor], candidate: list[torch.Tensor]) -> dict:
        found = self.ladder.right_from(level, eager, candidate)
        worst = self.doubtful[0] if self.doubtful else level
        if found is None or found > worst:
            self.doubtful = (HIGHEST + 1 if found is None else found, number, eager, candidate)
        return {"wrong": True} if found is None else {"right_from": found}

    def last_doubtful(self, request: dict, data: memoryview, parts: list[memoryview]) -> dict:
        """What both sides gave where they differed most since this was last asked."""
        if self.doubtful is None:
            return {"number": None}
        (_, number, eager, candidate), self.doubtful = self.doubtful, None
        at, described = 0, {"eager": [], "candidate": []}
        for name, tensors in (("eager", eager), ("candidate", candidate)):
            for tensor in tensors:
                entry = to_wire(tensor, parts, at)
                at += entry["bytes"][1]
                described[name].append(entry)
        return {"number": number, **described}

    def costs(self, request: dict, data: memoryview, parts: list[memoryview]) -> dict:
        """What a call costs the host and the device, each by itself."""
        draw = self.graphs[request["staged"]].draws[0]
        graph = self.graphs[request["graph"]]
        return {
            "host": graph.host_seconds(draw, request["seed"]),
            "device": graph.device_seconds(draw, request["seed"], cold=False),
            "cold": graph.device_seconds(draw, request["seed"], cold=True),
        }

    def inputs(self, described: list[dict], data: memoryview) -> list[Any]:
        return [
            entry["value"] if "value" in entry else from_wire(entry, data, self.device) for entry in described
        ]

    def copy(self, request: dict, data: memoryview, parts: list[memoryview]) -> dict:
        return {"seconds": copy_seconds(self.device, request["bytes"])}

    def product(self, request: dict, data: memoryview, parts: list[memoryview]) -> dict:
        return {"flops_per_second": flops_per_second(self.device, DTYPES[request["dtype"]])}


CALLS = {
    "hello": Worker.hello,
    "load": Worker.load,
    "drop": Worker.drop,
    "run": Worker.run,
    "stage": Worker.stage,
    "calls": Worker.calls,
    "doubtful": Worker.last_doubtful,
    "costs": Worker.costs,
    "copy": Worker.copy,
    "product": Worker.product,
}


def storage_of(tensor: torch.Tensor) -> int:
    """The address of its memory; tensors without elements have none in common."""
    return tensor.untyped_storage().data_ptr() if tensor.numel() else id(tensor)


def installed_version(package: str) -> str | None:
    """Without importing it, which takes longer than most graphs."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def classify(error: BaseException) -> tuple[str, bool]:
    """The kind of a failure, and whether this process can go on after it."""
    text = str(error)
    if isinstance(error, RemoteError):
        return error.kind, False
    if isinstance(error, PlanError) and not isinstance(error, LaunchError):
        return "plan", False
    if isinstance(error, torch.cuda.OutOfMemoryError | MemoryError) or "can't allocate memory" in text:
        return "memory", False
    if "CUDA error" in text or "cudaError" in text or "device-side assert" in text or "CUDA_ERROR" in text:
        return "cuda", True
    if isinstance(error, LaunchError):
        return "launch", False
    if isinstance(error, NotImplementedError):
        return "unsupported", False
    return "error", False


def message_of(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    text = lines[0] if lines else ""
    # What the other side says has its own words already.
    kind = "" if isinstance(error, RemoteError | PlanError) else f"{type(error).__name__}: "
    return f"{kind}{text}"[:2000]


def line_of(error: BaseException) -> int:
    """Line of the graph's text where it happened; 0 where that is not known."""
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        if frame.filename.startswith("<graph "):
            return frame.lineno or 0
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(prog="passnet.worker", description=__doc__)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--runner", help="the native plan runner, a shared library")
    parser.add_argument("--shared-memory", nargs=2, help="memory that requests and replies lay their raw bytes in")
    parser.add_argument("--threads", type=int, default=0, help="threads torch may use on the CPU")
    arguments = parser.parse_args()
    # Frames own the standard output; whatever else prints goes to the standard error.
    writer = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    reader = os.fdopen(os.dup(0), "rb", buffering=1 << 16)
    device = torch.device(arguments.device)
    if arguments.threads:
        torch.set_num_threads(arguments.threads)
    if device.type == "cuda":
        device = torch.device("cuda", device.index or 0)
        torch.cuda.set_device(device)
        torch.cuda.init()
        torch.empty(1, device=device)
    # As the reference has it: products of float32 in full precision.
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    runner = Runner(arguments.runner) if arguments.runner else None
    with torch.no_grad():
        Worker(device, runner, Channel(reader, writer, arguments.shared_memory)).serve()
    return 0
