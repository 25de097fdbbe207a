"""What one call of one small kernel costs the host: our replay, Triton's launcher, TorchInductor, eager, nothing.

    cd python && python -m passnet.kernels.launch_cost --runner ../target/release/libpassnet_runner.so [--device cuda] [--json FILE]

Everything adds two float32 vectors of 8,192 elements, in one process and one run. A number is the median of many short
series of calls, each begun with an idle device, so that no queue fills up and nothing waits for the GPU; on the CPU the
work itself is in it. Our own call is also taken apart by clocks inside the runner: looking at the arguments, allocating
the result, launching. Without a GPU the kernel is the runner's CPU code, and Triton and TorchInductor are left out.
"""

import argparse
import json
import platform
import statistics
import sys
import time
from pathlib import Path
from typing import Any, Callable

import torch

from passnet.worker.graphs import Graph
from passnet.worker.plans import Plan, PlanCall, Runner
from passnet.worker.quick import empty_strided

try:
    import triton
    import triton.language as tl
except ImportError:
    triton = None

ELEMENTS, BLOCK = 8192, 1024
CALLS, SERIES, WARM_UP = 20, 300, 50

if triton is not None:

    @triton.jit
    def add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
        i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        mask = i < n
        tl.store(out_ptr + i, tl.load(x_ptr + i, mask=mask) + tl.load(y_ptr + i, mask=mask), mask=mask)


# The same kernel as `passnet kernel plan --ir` prints it.
TILE_IR = """\
file 0 "add.py"
kernel add_kernel(%0 x_ptr: *fp32, %1 y_ptr: *fp32, %2 out_ptr: *fp32, %3 n: i32) {
  %4: i32 = program_id[0] @0:10
  %5: i32 = const[1024] @0:10
  %6: i32 = mul %4, %5 @0:10
  %7: i32<1024> = arange[0] @0:10
  %8: i32<1024> = splat %6 @0:10
  %9: i32<1024> = add %8, %7 @0:10
  %10: i32<1024> = splat %3 @0:11
  %11: i1<1024> = lt %9, %10 @0:11
  %12: *fp32<1024> = splat %2 @0:12
  %13: *fp32<1024> = addptr %12, %9 @0:12
  %14: *fp32<1024> = splat %0 @0:12
  %15: *fp32<1024> = addptr %14, %9 @0:12
  %16: fp32<1024> = load[mask,] %15, %11 @0:12
  %17: *fp32<1024> = splat %1 @0:12
  %18: *fp32<1024> = addptr %17, %9 @0:12
  %19: fp32<1024> = load[mask,] %18, %11 @0:12
  %20: fp32<1024> = add %16, %19 @0:12
  store[mask] %13, %20, %11 @0:12
}
"""

GRAPH = """\
import torch
class GraphModule(torch.nn.Module):
    def forward(self, x, y):
        z = passnet_plan_0(x, y);  x = y = None
        return (z,)
"""


def launch_plan() -> dict[str, Any]:
    def view(buffer: int) -> dict[str, Any]:
        return {"buffer": buffer, "offset": 0, "shape": [ELEMENTS], "stride": [1], "dtype": "float32"}

    def buffer(name: str, init: Any) -> dict[str, Any]:
        return {"name": name, "dtype": "float32", "elements": ELEMENTS, "init": init}

    pointers = [{"name": f"{name}_ptr", "value": {"buffer": view(i)}} for i, name in enumerate(("x", "y", "out"))]
    constants = [
        {"name": "n", "value": {"int": {"value": ELEMENTS, "elem": "I32"}}},
        {"name": "BLOCK", "value": {"const": {"int": BLOCK}}},
    ]
    launch = {
        "kernel": "add_kernel", "module": 0, "grid": [ELEMENTS // BLOCK, 1, 1], "args": pointers + constants,
        "num_warps": 4, "num_stages": 3, "enable_fp_fusion": True, "maxnreg": None, "configs": [], "config": None,
        "file": "add.py", "line": 1,
    }
    return {
        "version": 1,
        "buffers": [buffer("x", {"input": 0}), buffer("y", {"input": 1}), buffer("out", "uninitialized")],
        "steps": [{"launch": launch}],
        "returns": [view(2)],
        "returns_sequence": False,
        "notes": [],
    }


def load_plan(runner: Runner, device: torch.device) -> Plan:
    plan = launch_plan()
    if device.type == "cpu":
        handle = runner.load(json.dumps({"plan": plan, "kernels": [TILE_IR]}).encode(), None)
        return Plan(runner, handle, plan, device)
    from passnet.sandboxed.compile_kernels import compile_kernel

    major, minor = torch.cuda.get_device_capability(device)
    pointers = [{"name": f"{name}_ptr", "type": "*fp32", "divisible": True} for name in ("x", "y", "out")]
    request = {
        "module": "here", "kernel": "add_kernel", "target": f"cuda:{major}{minor}:32",
        "options": {"num_warps": 4, "num_stages": 3},
        "parameters": pointers + [
            {"name": "n", "type": "i32", "divisible": True}, {"name": "BLOCK", "constant": {"int": BLOCK}},
        ],
    }
    kernel, cubin = compile_kernel(request, {"here": sys.modules[__name__]})
    kernel |= {"offset": 0, "length": len(cubin), "aligned": [0, 1, 2]}
    handle = runner.load(json.dumps({"plan": plan, "kernels": [kernel]}).encode(), cubin)
    return Plan(runner, handle, plan, device)


def synchronize(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def host_seconds(call: Callable[[], Any], device: torch.device, calls: int = CALLS) -> tuple[float, float]:
    """Median and least of many series."""
    for _ in range(WARM_UP):
        call()
    times = []
    for _ in range(SERIES):
        synchronize(device)
        started = time.perf_counter()
        for _ in range(calls):
            call()
        times.append((time.perf_counter() - started) / calls)
    synchronize(device)
    return statistics.median(times), min(times)


def measure(runner: Runner, device: torch.device) -> dict[str, Any]:
    x, y = (torch.randn(ELEMENTS, device=device) for _ in range(2))
    expected = x + y
    plan = load_plan(runner, device)
    call = PlanCall(0, lambda *_: plan, runner)
    handle, function = call.handle, call.function()
    graph = Graph(GRAPH, 1, "eager", device, lambda *_: plan, runner)
    calls: dict[str, Callable[[], Any]] = {
        "an empty Python function": lambda: nothing(x, y),
        "our plan": lambda: function(x, y),
        "our plan in its graph": lambda: graph.forward(x, y),
        "our plan through Python": lambda: plan((x, y), False),
        "eager": lambda: x + y,
    }
    if device.type == "cuda":
        out = torch.empty_like(x)
        grid = (ELEMENTS // BLOCK,)
        compiled = torch.compile(lambda x, y: x + y)
        calls |= {
            "Triton's launcher": lambda: add_kernel[grid](x, y, out, ELEMENTS, BLOCK=BLOCK),
            "Triton's launcher and torch.empty_like": lambda: add_kernel[grid](
                x, y, torch.empty_like(x), ELEMENTS, BLOCK=BLOCK
            ),
            "TorchInductor": lambda: compiled(x, y),
        }
    allocate = empty_strided(device)
    calls["torch.empty"] = lambda: torch.empty((ELEMENTS,), dtype=torch.float32, device=device)
    if allocate is not None:
        calls["the allocation we use"] = lambda: allocate((ELEMENTS,), (1,), torch.float32)
    for name in ("our plan", "our plan in its graph", "our plan through Python"):
        result = calls[name]()
        result = result[0] if isinstance(result, tuple) else result
        if not torch.equal(result, expected):
            raise SystemExit(f"{name} gives something else than eager")
    seconds = {name: host_seconds(call, device) for name, call in calls.items()}
    result: dict[str, Any] = {
        "device": torch.cuda.get_device_name(device) if device.type == "cuda" else platform.processor() or "cpu",
        "torch": torch.__version__,
        "python": platform.python_version(),
        "triton": triton.__version__ if triton is not None else None,
        "native": handle is not None,
        "microseconds": {name: [round(value * 1e6, 3) for value in both] for name, both in seconds.items()},
    }
    if handle is not None:
        stages = []
        for _ in range(SERIES):
            synchronize(device)
            stages.append(runner.quick.measure(handle, (x, y), CALLS))
        synchronize(device)
        medians = [statistics.median(column) * 1e6 for column in zip(*stages, strict=True)]
        result["stages"] = dict(zip(("guard", "allocate", "launch"), (round(m, 3) for m in medians), strict=True))
    return result


def nothing(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return x


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--runner", required=True, help="libpassnet_runner.so")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--json", type=Path, help="write the numbers here, too")
    arguments = parser.parse_args()
    device = torch.device(arguments.device)
    if device.type == "cuda":
        device = torch.device("cuda", device.index or 0)
        torch.cuda.set_device(device)
    with torch.no_grad():
        result = measure(Runner(arguments.runner), device)
    print(f"{result['device']}, PyTorch {result['torch']}, Triton {result['triton']}, Python {result['python']}")
    print("microseconds of the host for one call: median and least of", SERIES, "series of", CALLS)
    for name, (median, least) in result["microseconds"].items():
        print(f"  {name:42}{median:9.2f}{least:9.2f}")
    for name, median in result.get("stages", {}).items():
        print(f"  our plan: {name:32}{median:9.2f}")
    if arguments.json:
        arguments.json.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
