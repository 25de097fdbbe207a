"""Runs a graph on a GPU under PyTorch's profiler and writes what it saw, for `passnet graph show --profile --device cuda`.

    python -m passnet.graphs.profile_cuda FOLDER --out FILE   a trace of several calls, every statement under its own name
    python -m passnet.graphs.profile_cuda FOLDER --once       one call and nothing else, for a profiler around this process

FOLDER holds a graph as passnet prints it; its text is ours.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import tempfile
from pathlib import Path

# What begins the name of a statement in the trace.
MARK = "passnet:"
WARM_UP = 3
COPY_BYTES = 1 << 28


def marked(text: str) -> str:
    """The same module, each statement of `forward` that computes under a record of its target's name."""
    module = ast.parse(text)
    forward = next(node for node in ast.walk(module) if isinstance(node, ast.FunctionDef) and node.name == "forward")
    forward.body = [mark(statement) for statement in forward.body]
    module.body.insert(0, ast.parse("import torch.profiler").body[0])
    return ast.unparse(ast.fix_missing_locations(module))


def mark(statement: ast.stmt) -> ast.stmt:
    name = target(statement)
    if name is None:
        return statement
    record = ast.parse(f"with torch.profiler.record_function({MARK + name!r}):\n    pass").body[0]
    assert isinstance(record, ast.With)
    record.body = [statement]
    return record


def target(statement: ast.stmt) -> str | None:
    """The name that a statement computes; none for a return and for names that are given up."""
    match statement:
        case ast.Assign(value=ast.Constant(value=None)):
            return None
        case ast.Assign(targets=[ast.Name(id=name), *_]) | ast.AugAssign(target=ast.Name(id=name)):
            return name
        case ast.Assign(targets=[ast.Tuple(elts=[ast.Name(id=name), *_])]):
            return name
        case ast.Assign() | ast.Expr():
            return ast.unparse(statement).split("=")[0].strip()[:40]
    return None


def load(folder: Path, device: str):
    """The graph as a callable of nothing, its inputs on the device."""
    import torch

    from passnet.graphs.replay import replay_inputs

    space: dict = {}
    exec(compile(marked((folder / "model.py").read_text()), "model.py", "exec"), space)
    module = next(value for value in space.values() if isinstance(value, type) and issubclass(value, torch.nn.Module))()
    inputs = {name: value.to(device) for name, value in replay_inputs(folder).items()}
    names = module.forward.__code__.co_varnames[1 : module.forward.__code__.co_argcount]

    def call():
        # Graphs may write into their inputs.
        with torch.no_grad():
            module.forward(*(inputs[name].clone() if name in inputs else None for name in names))

    return call


def bandwidth(device: str) -> float:
    """Bytes a second that a copy reads and writes."""
    import torch

    source = torch.ones(COPY_BYTES // 2, dtype=torch.uint8, device=device)
    target = torch.empty_like(source)
    times = []
    for _ in range(12):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        target.copy_(source)
        end.record()
        end.synchronize()
        times.append(begin.elapsed_time(end) / 1e3)
    return COPY_BYTES / min(times)


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--once", action="store_true")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--calls", type=int, default=10)
    args = parser.parse_args()
    import torch

    call = load(args.folder, args.device)
    if args.once:
        call()
        return 0
    on_gpu = args.device == "cuda"
    for _ in range(WARM_UP):
        call()
    activities = [torch.profiler.ProfilerActivity.CPU]
    if on_gpu:
        activities.append(torch.profiler.ProfilerActivity.CUDA)
    with torch.profiler.profile(activities=activities) as profiler:
        for _ in range(args.calls):
            call()
        if on_gpu:
            torch.cuda.synchronize()
    handle, name = tempfile.mkstemp(suffix=".json")
    os.close(handle)
    try:
        profiler.export_chrome_trace(name)
        trace = json.loads(Path(name).read_text())
    finally:
        os.unlink(name)
    device = torch.cuda.get_device_name() if on_gpu else "cpu"
    result = {
        "device": device,
        "bandwidth": bandwidth(args.device) if on_gpu else None,
        "calls": args.calls,
        "trace": {"traceEvents": trace["traceEvents"]},
    }
    args.out.write_text(json.dumps(result))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
