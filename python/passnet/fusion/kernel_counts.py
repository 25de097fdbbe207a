"""Kernel counts of every prefix of a graph under TorchInductor, as fusible ranges are found by them.

`python -m passnet.fusion.kernel_counts --out DIR GRAPHS...` writes `DIR/<graph>.json` for each graph:
`start_offset_in_original_graph`, `num_subgraph_kernels`, `num_subgraph_ops` and, for every prefix,
what the count is made of. `--by launches` (the default) compiles and profiles on a CUDA device and
counts launches through every API; `--by schedule` asks Inductor's scheduler and needs no GPU.
Run again after an interruption: prefixes already counted are kept.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from ..graphs.prefixes import Prefix, prefix, trace
from ..graphs.replay import read_metas, replay_inputs
from ..graphs.shapes import find_graphs
from ..graphs.statements import Forward, read_model

# The names under which the runtime and the driver launch kernels; the reference counts the first two.
LAUNCHES = (
    "cuLaunchKernel",
    "cudaLaunchKernel",
    "cuLaunchKernelEx",
    "cudaLaunchKernelExC",
    "cudaLaunchCooperativeKernel",
    "cuLaunchCooperativeKernel",
)
WARM_UPS = 3


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="passnet.fusion.kernel_counts", description=__doc__)
    parser.add_argument("graphs", nargs="+", type=Path, help="graph folders or trees of them")
    parser.add_argument("--out", type=Path, required=True, help="folder for the counts")
    parser.add_argument("--by", choices=["launches", "schedule"], default="launches")
    parser.add_argument("--budget", type=float, default=None, help="stop after so many seconds")
    parser.add_argument("--stride", type=int, default=1, help="count every n-th prefix only")
    options = parser.parse_args(arguments)
    warnings.simplefilter("ignore")
    if options.by == "launches" and not torch.cuda.is_available():
        print("error: counting launches needs a CUDA device", file=sys.stderr)
        print("hint: `--by schedule` asks Inductor's scheduler without one", file=sys.stderr)
        return 3
    if options.by == "schedule":
        from .inductor_schedule import pretend_gpu

        pretend_gpu()
    options.out.mkdir(parents=True, exist_ok=True)
    deadline = None if options.budget is None else time.monotonic() + options.budget
    failed = False
    folders = find_graphs(options.graphs)
    for folder in folders:
        target = options.out / f"{output_name(folder, folders)}.json"
        failed |= not count_graph(folder, target, options.by, options.stride, deadline)
        if deadline is not None and time.monotonic() > deadline:
            print("the time budget is spent; run again to continue", file=sys.stderr)
            return 1
    return int(failed)


def output_name(folder: Path, folders: Sequence[Path]) -> str:
    """The folder's name, with its parents' where two graphs share it."""
    same = sum(other.name == folder.name for other in folders)
    return folder.name if same == 1 else "__".join(folder.parts[-3:])


def count_graph(
    folder: Path, target: Path, by: str, stride: int, deadline: float | None
) -> bool:
    """Count the prefixes of one graph that `target` does not hold yet."""
    forward = read_model(folder / "model.py")
    traced = trace(forward)
    counted: dict[int, dict[str, Any]] = {}
    if target.exists():
        counted = {entry["ops"]: entry for entry in json.loads(target.read_text())["prefixes"]}
    inputs = graph_inputs(folder, forward, "cuda" if by == "launches" else "meta")
    started = time.monotonic()
    for ops in range(1, len(forward.ops) + 1):
        if ops in counted or (ops % stride and ops != len(forward.ops)):
            continue
        if deadline is not None and time.monotonic() > deadline:
            break
        entry: dict[str, Any] = {"ops": ops}
        try:
            piece = prefix(forward, traced, ops)
            arguments = [inputs[name] for name in piece.arguments]
            counter = count_launches if by == "launches" else count_schedule
            entry |= counter(piece, arguments)
        except Exception as error:  # one prefix that does not compile must not stop the rest
            entry["error"] = f"{type(error).__name__}: {' '.join(str(error).split())}"[:300]
        counted[ops] = entry
        write_counts(target, folder, [counted[key] for key in sorted(counted)])
    errors = sum("error" in entry for entry in counted.values())
    kernels = [counted[key].get("kernels") for key in sorted(counted)]
    seconds = time.monotonic() - started
    print(f"{folder.name}: {kernels} ({errors} errors, {seconds:.1f} s)", file=sys.stderr, flush=True)
    return errors == 0


def write_counts(target: Path, folder: Path, entries: list[dict[str, Any]]) -> None:
    complete = [entry for entry in entries if "kernels" in entry]
    record = {
        "start_offset_in_original_graph": start_offset(folder),
        "num_subgraph_kernels": [entry["kernels"] for entry in complete],
        "num_subgraph_ops": [entry["ops"] for entry in complete],
        "torch": torch.__version__,
        "prefixes": entries,
    }
    part = target.with_suffix(".part")
    part.write_text(json.dumps(record, indent=1) + "\n")
    part.replace(target)


def start_offset(folder: Path) -> int:
    """Where the piece begins in the graph it was cut from."""
    sources = folder / "subgraph_sources.json"
    if not sources.exists():
        return 0
    ranges = next(iter(json.loads(sources.read_text()).values()), [[0, 0]])
    return int(ranges[0][0])


def graph_inputs(folder: Path, forward: Forward, device: str) -> dict[str, Any]:
    """Replayed inputs on the device; on `meta`, shapes and dtypes alone."""
    metas = {
        meta.name: meta
        for file in ("input_meta.py", "weight_meta.py")
        for meta in read_metas(folder / file)
    }
    symbols = {argument.name for argument in forward.arguments if argument.is_symint}
    if device == "meta":
        tensors = {
            name: torch.empty(meta.shape, dtype=meta.dtype, device="meta")
            for name, meta in metas.items()
        }
    else:
        tensors = {name: value.to(device) for name, value in replay_inputs(folder).items()}
    numbers = {name: int(meta.data[0]) for name, meta in metas.items() if name in symbols}
    return tensors | numbers


def count_schedule(piece: Prefix, arguments: list[Any]) -> dict[str, Any]:
    from .inductor_schedule import scheduled_kernels

    kernels = scheduled_kernels(piece.function, arguments)
    return {"kernels": len(kernels), "schedule": [" ".join(kernel) for kernel in kernels]}


def count_launches(piece: Prefix, arguments: list[Any]) -> dict[str, Any]:
    from torch._inductor import metrics
    from torch.profiler import ProfilerActivity, profile

    torch._dynamo.reset()
    metrics.reset()
    with torch.no_grad():
        compiled = torch.compile(piece.function)
        for _ in range(WARM_UPS):
            compiled(*arguments)
        torch.cuda.synchronize()
        with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as profiler:
            compiled(*arguments)
            torch.cuda.synchronize()
    launches: dict[str, int] = {}
    device_kernels: list[str] = []
    for event in profiler.events():
        if event.name in LAUNCHES:
            launches[event.name] = launches.get(event.name, 0) + 1
        elif event.device_type == torch.autograd.DeviceType.CUDA:
            device_kernels.append(event.name[:80])
    return {
        "kernels": sum(launches.values()),
        "reference_kernels": sum(launches.get(name, 0) for name in LAUNCHES[:2]),
        "launches": launches,
        "generated": metrics.generated_kernel_count,
        "device": device_kernels,
    }


if __name__ == "__main__":
    sys.exit(main())
