"""A model timed in several ways, in turns, its outputs compared: `python -m passnet.backend.bench SPEC… --batch 1,16`.

    eager                      the model as it is
    eager-cudagraph            its launches recorded and replayed
    inductor[-MODE]            TorchInductor
    inductor-freezing          TorchInductor with the weights as constants
    passnet                    this backend; the rest is eager PyTorch
    passnet-cudagraph          the same, recorded
    passnet-inductor[-MODE]    this backend; the rest goes through TorchInductor
    passnet-fastest            this backend, in the way that was fastest at the first call; recorded on a GPU
    passnet-fastest-freezing   the same, where the weights may be constants
"""

from __future__ import annotations

import argparse
import contextlib
import copy
import gc
import importlib.metadata
import json
import math
import platform
import signal
import statistics
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch

from passnet.backend import passnet_backend, report, reporting
from passnet.backend.models import build, prepared, tensors
from passnet.backend.server import server
from passnet.backend.verification import BASELINE, distance, is_as_near
from passnet.worker.compilers import Captured
from passnet.parity import yardstick

WAYS = (
    "eager", "eager-cudagraph", "inductor", "inductor-reduce-overhead", "inductor-max-autotune", "passnet",
    "passnet-cudagraph", "passnet-inductor", "passnet-inductor-reduce-overhead",
    "passnet-fastest", "inductor-freezing", "passnet-fastest-freezing",
)  # fmt: skip
# Calls before anything is timed, after the first, which compiles. In the first of them, recordings are made.
WARM_UP = 5
RECORDED = 2


@dataclass
class Timed:
    way: str
    # Of one call: the median, and where it lies with 99 % confidence.
    ms: float | None = None
    low: float | None = None
    high: float | None = None
    # The least: what is left of it where others use the machine, too.
    least: float | None = None
    # Of the processor, all threads together, the median: where the model computes there, and others use it, too.
    processor_ms: float | None = None
    # Of the first call, which compiles, and of all calls until nothing is compiled or recorded any more.
    compile_seconds: float | None = None
    ready_seconds: float | None = None
    # The most memory of the device in a call, in MiB: the weights, and what the allocator took for this way alone.
    memory: float | None = None
    # Distance from the float64 result, relative to its size; eager's beside it.
    distance: float | None = None
    right: bool | None = None
    error: str | None = None
    # What the backend did.
    replaced: int | None = None
    operations: int | None = None
    # How its graphs run, where it chose, and whether that was known before.
    chosen: list[str] | None = None
    known: bool | None = None


@dataclass
class Result:
    model: str
    batch: int
    device: str
    dtype: str
    torch: str
    # Where these times come from: device, versions and the program's build, in the words of a run's identity.
    identity: dict[str, Any]
    ways: list[Timed] = field(default_factory=list)


def made(way: str, module: torch.nn.Module, call: Callable[[Any], Any], options: dict[str, Any]) -> Callable[[], Any]:
    """A function without arguments that runs the model in this way."""
    if way == "eager":
        return lambda: call(module)
    if way == "eager-cudagraph":
        return recorded(module, call)
    if way == "inductor-freezing":
        return frozen(module, call)
    if way.startswith("inductor"):
        mode = way.removeprefix("inductor").removeprefix("-") or "default"
        compiled = torch.compile(module, backend="inductor", mode=mode)
        return lambda: call(compiled)
    given = dict(options)
    rest = way.removeprefix("passnet").removeprefix("-")
    if rest == "cudagraph":
        given["cuda_graphs"] = True
    elif rest.startswith("fastest"):
        given.update(rest="fastest", cuda_graphs=torch.cuda.is_available(), freeze=rest.endswith("freezing"))
    elif rest:
        given.update(rest="inductor", inductor_mode=rest.removeprefix("inductor").removeprefix("-") or "default")
    compiled = torch.compile(module, backend=passnet_backend, options=given)
    return lambda: call(compiled)


def frozen(module: torch.nn.Module, call: Callable[[Any], Any]) -> Callable[[], Any]:
    """TorchInductor with freezing; dynamo looks at the setting as well, when it compiles."""
    from torch._inductor import config

    # As an option, too: dynamo would take what the same backend compiled for the same module before.
    compiled = torch.compile(module, backend="inductor", options={"freezing": True})
    with config.patch(freezing=True):
        call(compiled)
    # What is compiled stays so, and the setting costs no call anything.
    return lambda: call(compiled)


def recorded(module: torch.nn.Module, call: Callable[[Any], Any]) -> Callable[[], Any]:
    """Eager in a CUDA graph, inputs copied in."""
    captured: list[Captured] = []

    def run(*args: Any, **kwargs: Any) -> Any:
        names = list(kwargs)
        if not captured:
            forward = lambda *values: module(*values[: len(args)], **dict(zip(names, values[len(args) :])))  # noqa: E731
            device = next(v.device for v in (*args, *kwargs.values()) if isinstance(v, torch.Tensor))
            captured.append(Captured(forward, device, False))
        return captured[0](*args, *kwargs.values())

    return lambda: call(run)


class TooLate(BaseException):
    """No `Exception`: a compiler goes on after those."""


def place_of(error: BaseException) -> str:
    """Where it was raised, and which place of this package led there."""
    frames = traceback.extract_tb(error.__traceback__)
    # The last one is the handler of the signal.
    frames = [frame for frame in frames if frame.name != "leave"]
    ours = [frame for frame in frames if "passnet" in frame.filename and frame.name != "measure"]
    named = dict.fromkeys(f"{Path(frame.filename).name}:{frame.lineno}" for frame in (*ours[-3:], *frames[-1:]))
    return " > ".join(named)


@contextlib.contextmanager
def given_up(until: float) -> Iterator[None]:
    """Leaves what is inside at this time, so that the ways before it are not lost with one that takes too long."""
    if math.isinf(until):
        yield
        return

    def leave(*_: Any) -> None:
        raise TooLate

    before = signal.signal(signal.SIGALRM, leave)
    signal.setitimer(signal.ITIMER_REAL, max(until - time.monotonic(), 1e-3))
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)


@contextlib.contextmanager
def fresh_cache() -> Iterator[None]:
    """TorchInductor compiles as it does in a process that has compiled nothing, on a machine that has not, either."""
    from torch._inductor import utils

    # PyTorch gave it another name.
    fresh = getattr(utils, "fresh_cache", None) or utils.fresh_inductor_cache
    with fresh():
        yield


def compile_something(device: torch.device) -> None:
    """What the first compilation of a process loads is no way's own: none of them is to pay for it."""
    with fresh_cache():
        for mode in ("default", "reduce-overhead") if device.type == "cuda" else ("default",):
            forward = torch.compile(lambda x, y: torch.softmax(x @ y, -1) * 2, backend="inductor", mode=mode)
            for _ in range(1 + RECORDED):
                forward(*[torch.randn(32, 32, device=device) for _ in range(2)])
    synchronize(device)
    torch._dynamo.reset()


def synchronize(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def taken(device: torch.device) -> int:
    """What a process has taken of the device's memory and cannot give back: tensors, and the pools of recordings."""
    if device.type != "cuda":
        return 0
    gc.collect()
    # Every way has workspaces of its own; those of recordings lie in their pools.
    torch._C._cuda_clearCublasWorkspaces()
    torch.cuda.empty_cache()
    return torch.cuda.memory_reserved(device)


def most_taken(device: torch.device, run: Callable[[], Any]) -> tuple[Any, int]:
    """What a call gives, and the most memory that was taken in it."""
    taken(device)
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
    result = run()
    synchronize(device)
    return result, torch.cuda.max_memory_reserved(device) if device.type == "cuda" else 0


def interval(times: list[float]) -> tuple[float, float]:
    """Where the median lies with 99 % confidence, by the order of the times."""
    ordered, count = sorted(times), len(times)
    reach = 2.576 * math.sqrt(count) / 2
    low, high = math.floor(count / 2 - reach), math.ceil(count / 2 + reach)
    return ordered[max(low, 0)], ordered[min(high, count - 1)]


def measure(
    spec: str,
    batch: int,
    ways: list[str],
    device: torch.device,
    dtype: torch.dtype,
    seconds: float,
    options: dict[str, Any],
    wait: Callable[[], None] = lambda: None,
    begin_until: float = math.inf,
    ready_until: float = math.inf,
    cold: bool = False,
) -> Result:
    torch.manual_seed(0)
    torch._dynamo.reset()
    reporting.clear()
    # As programs make models: of weights that are made in inference mode nobody can say later whether they were updated.
    with torch.inference_mode(False):
        module, call = prepared(build(spec), batch, device, dtype)
    dtype_name = str(dtype).removeprefix("torch.")
    result = Result(spec, batch, device_name(device), dtype_name, torch.__version__, {})
    runs: dict[str, Callable[[], Any]] = {}
    outputs: dict[str, list[torch.Tensor]] = {}
    weights = torch.cuda.memory_allocated(device) if device.type == "cuda" else 0
    if cold:
        compile_something(device)
    for way in ways:
        timed = Timed(way)
        result.ways.append(timed)
        if time.monotonic() > begin_until:
            timed.error = "not begun in time"
            continue
        try:
            before, held = len(report().graphs), taken(device)
            with given_up(ready_until), fresh_cache() if cold else contextlib.nullcontext():
                started = time.perf_counter()
                run = made(way, module, call, options)
                run()
                synchronize(device)
                timed.compile_seconds = round(time.perf_counter() - started, 3)
                for _ in range(RECORDED):
                    run()
                synchronize(device)
                timed.ready_seconds = round(time.perf_counter() - started, 3)
            for _ in range(WARM_UP - RECORDED):
                run()
            found, most = most_taken(device, run)
            outputs[way] = [value.clone() for value in tensors(found)]
            if device.type == "cuda":
                # What other ways keep does not count.
                timed.memory = round((most - held + weights) / 2**20, 1)
            graphs = report().graphs[before:]
            if way.startswith("passnet"):
                timed.operations = sum(graph["operations"] for graph in graphs)
                timed.replaced = sum(graph["replaced"] for graph in graphs)
                timed.chosen = [graph["way"] for graph in graphs]
                timed.known = not any(graph["ways_us"] for graph in graphs)
            runs[way] = run
        except TooLate as late:
            timed.error = f"not ready in time, in {place_of(late)}"
        except Exception as error:  # noqa: BLE001 - what one way cannot do is its result
            lines = str(error).strip().splitlines() or [""]
            timed.error = f"{type(error).__name__}: {lines[0]}"
    judge(result, outputs, module, call)
    result.identity = identity(device)
    wait()
    race(runs, result, device, seconds)
    return result


def race(runs: dict[str, Callable[[], Any]], result: Result, device: torch.device, seconds: float) -> None:
    """Times all ways in turns, so that whatever happens to the machine happens to all of them."""
    times: dict[str, list[float]] = {way: [] for way in runs}
    processor: dict[str, list[float]] = {way: [] for way in runs}
    until = time.perf_counter() + seconds * max(len(runs), 1)
    gc.collect()
    gc.disable()
    try:
        while time.perf_counter() < until or min(map(len, times.values()), default=10) < 10:
            for way, run in runs.items():
                synchronize(device)
                started, busy = time.perf_counter(), time.process_time()
                run()
                synchronize(device)
                times[way].append((time.perf_counter() - started) * 1e3)
                processor[way].append((time.process_time() - busy) * 1e3)
    finally:
        gc.enable()
    for timed in result.ways:
        if times.get(timed.way):
            timed.ms = statistics.median(times[timed.way])
            timed.low, timed.high = interval(times[timed.way])
            timed.least = min(times[timed.way])
            if device.type == "cpu":
                timed.processor_ms = statistics.median(processor[timed.way])


def judge(result: Result, outputs: dict[str, list[torch.Tensor]], module: torch.nn.Module, call: Callable[[Any], Any]) -> None:
    """A way is right where it is about as near to the model in float64 as eager is, or where PassBench's yardstick says so."""

    def widened(*args: Any, **kwargs: Any) -> Any:
        wide = lambda v: v.double() if isinstance(v, torch.Tensor) and v.is_floating_point() else v  # noqa: E731
        return exact(*map(wide, args), **{name: wide(value) for name, value in kwargs.items()})

    if "eager" not in outputs:
        return
    try:
        # The ways read the module's own weights.
        exact = copy.deepcopy(module).double()
        truth = tensors(call(widened))
    except Exception:  # noqa: BLE001 - what does not run in float64 is held against eager itself
        truth = outputs["eager"]
    for timed in result.ways:
        if timed.way in outputs:
            timed.distance = distance(truth, outputs[timed.way])
            judged = yardstick.judge(truth, outputs["eager"], outputs[timed.way], BASELINE)
            is_right = judged is not None and judged.is_right
            timed.right = is_as_near(truth, outputs["eager"], outputs[timed.way]) or is_right
    if truth and truth[0].is_cuda:
        # The model in float64 is large, and other processes may want the memory.
        exact = truth = None
        gc.collect()
        torch.cuda.empty_cache()


def wait_for_turn() -> None:
    """Many models are compiled side by side, and timed one after the other (`tools/model_table.py`)."""
    print("ready", flush=True)
    sys.stdin.readline()


def device_name(device: torch.device) -> str:
    return torch.cuda.get_device_name(device) if device.type == "cuda" else f"cpu, {torch.get_num_threads()} threads"


def identity(device: torch.device) -> dict[str, Any]:
    """What the program says of itself and of the processor, and what only this process knows."""
    known = {**server().identity, "python": platform.python_version(), "torch": torch.__version__}
    with contextlib.suppress(importlib.metadata.PackageNotFoundError):
        known["triton"] = importlib.metadata.version("triton")
    if torch.version.cuda:
        known["cuda"] = torch.version.cuda
    if device.type == "cuda":
        capability = list(torch.cuda.get_device_capability(device))
        known["device"] = {"kind": "cuda", "name": torch.cuda.get_device_name(device), "capability": capability}
    else:
        # Not all cores that there are.
        known["cores"] = torch.get_num_threads()
    return known


def table(results: list[Result]) -> str:
    lines = []
    for result in results:
        lines.append(f"{result.model}  batch {result.batch}  {result.dtype}  {result.device}  PyTorch {result.torch}")
        eager = next((timed.ms for timed in result.ways if timed.way == "eager"), None)
        for timed in result.ways:
            if timed.error is not None:
                lines.append(f"  {timed.way:34} {timed.error}")
                continue
            speedup = f"{eager / timed.ms:5.2f}x" if eager and timed.ms else ""
            said = "right" if timed.right else "WRONG"
            done = f"  {timed.replaced}/{timed.operations} replaced" if timed.replaced is not None else ""
            memory = f"  {timed.memory:.0f} MiB" if timed.memory is not None else ""
            lines.append(
                f"  {timed.way:34} {timed.ms:9.3f} ms [{timed.low:.3f}, {timed.high:.3f}] {speedup}  "
                f"{said} ({timed.distance:.1e})  compiled in {timed.compile_seconds:.1f} s{memory}{done}"
            )
    return "\n".join(lines)


def means(results: list[Result]) -> list[str]:
    """Geometric means over the models of each batch size, against eager."""
    lines = []
    for batch in sorted({result.batch for result in results}):
        ratios: dict[str, list[float]] = {}
        for result in results:
            by_way = {timed.way: timed.ms for timed in result.ways if timed.ms}
            if result.batch == batch and "eager" in by_way:
                for way, ms in by_way.items():
                    ratios.setdefault(way, []).append(by_way["eager"] / ms)
        for way, values in ratios.items():
            mean = math.exp(sum(map(math.log, values)) / len(values))
            lines.append(f"batch {batch}: {way:34} {mean:5.2f}x eager in geometric mean of {len(values)}")
    return lines


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="passnet model bench", description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="+", help="FILE.py:factory, timm:NAME or hf:MODEL_TYPE[,setting=value…]")
    parser.add_argument("--batch", default="1", help="batch sizes, such as 1,16")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--dtype", default="bfloat16" if torch.cuda.is_available() else "float32")
    parser.add_argument("--ways", default="", help=f"some of {', '.join(WAYS)}")
    parser.add_argument("--seconds", type=float, default=2.0, help="seconds of timing for each way")
    parser.add_argument("--options", default="{}", help="options of the backend, as JSON")
    parser.add_argument("--json", action="store_true", help="one JSON object for each model and batch size")
    parser.add_argument("--wait", action="store_true", help="say `ready` before timing, and wait for a line of input")
    parser.add_argument("--cold", action="store_true", help="compile every way with empty caches of TorchInductor's")
    parser.add_argument("--begin-within", type=float, default=math.inf, help="begin to compile no way after so many seconds")
    parser.add_argument("--ready-within", type=float, default=math.inf, help="give up a way that still compiles after so many")
    parser.add_argument("--since", type=float, default=time.monotonic(), help="the monotonic clock where both begin to count")
    given = parser.parse_args(arguments)
    begin_until, ready_until = given.since + given.begin_within, given.since + given.ready_within
    device = torch.device(given.device)
    wait = wait_for_turn if given.wait else lambda: None
    usual = WAYS if device.type == "cuda" else tuple(w for w in WAYS if "cudagraph" not in w and "overhead" not in w)
    ways = given.ways.split(",") if given.ways else list(usual)
    unknown = [way for way in ways if way not in WAYS]
    if unknown:
        parser.error(f"there is no way {unknown[0]!r}")
    torch._dynamo.config.recompile_limit = 64
    results, failed = [], False
    with torch.inference_mode():
        for spec in given.models:
            for batch in map(int, given.batch.split(",")):
                try:
                    dtype = getattr(torch, given.dtype)
                    options = json.loads(given.options)
                    result = measure(
                        spec, batch, ways, device, dtype, given.seconds, options, wait, begin_until, ready_until, given.cold
                    )
                except Exception as error:  # noqa: BLE001 - the next model may do
                    failed = True
                    print(f"{spec} batch {batch}: {type(error).__name__}: {error}", file=sys.stderr)
                    continue
                results.append(result)
                failed |= any(timed.right is False for timed in result.ways)
                print(json.dumps(asdict(result)) if given.json else table([result]), flush=True)
    if not given.json and len(results) > 1:
        print("\n".join(means(results)))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
