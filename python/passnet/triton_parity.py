"""Run the kernel fixtures under Triton itself and compare with ours.

    python -m passnet.triton_parity golden crates/passnet-kernel/tests/kernels OUT.safetensors
    python -m passnet.triton_parity compare crates/passnet-kernel/tests/kernels --passnet target/release/passnet
    python -m passnet.triton_parity bench crates/passnet-kernel/tests/kernels --passnet target/release/passnet

Each fixture describes its inputs in its header; the data come from a counter-based generator that the Rust
side repeats bit for bit. Without a GPU the kernels run in Triton's interpreter; with `--cuda` they are compiled.
"""

import argparse
import ast
import importlib.util
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

if "--cuda" not in sys.argv:
    os.environ["TRITON_INTERPRET"] = "1"

import numpy as np  # noqa: E402
import torch  # noqa: E402
import triton  # noqa: E402
from safetensors.torch import load_file, save_file  # noqa: E402


def random_bits(stream: int, count: int) -> np.ndarray:
    """SplitMix64 of a counter; each input has its own stream."""
    index = np.arange(1, count + 1, dtype=np.uint64) + np.uint64(stream << 40)
    z = index * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def unit(bits: np.ndarray) -> np.ndarray:
    return (bits >> np.uint64(40)).astype(np.float64) / float(1 << 24)


def storage(stream: int, count: int, filling: list[str]) -> np.ndarray:
    kind = filling[0] if filling else "normal"
    if kind == "normal":
        sums = unit(random_bits(stream, 4 * count)).reshape(count, 4)
        total = ((sums[:, 0] + sums[:, 1]) + sums[:, 2]) + sums[:, 3]
        return (total - 2.0) * 1.7320508075688772
    if kind == "uniform":
        low, high = float(filling[1]), float(filling[2])
        return low + (high - low) * unit(random_bits(stream, count))
    if kind == "int":
        low, high = int(filling[1]), int(filling[2])
        return low + (random_bits(stream, count) % np.uint64(max(high - low, 1))).astype(np.int64)
    if kind == "arange":
        return np.arange(count, dtype=np.int64)
    if kind == "constant":
        return np.full(count, float(filling[1]))
    raise ValueError(f"unknown filling {kind}")


def tensor(stream: int, text: str, device: str) -> torch.Tensor:
    match = re.match(r"(\S+) (\S+) \[(.*?)\]\s*(.*)$", text)
    _, dtype, shape, rest = match.groups()
    shape = [int(d) for d in shape.split(",") if d.strip()]
    stride = None
    if "stride" in rest:
        rest, text = rest.split("stride")
        stride = ast.literal_eval(text.strip())
    count = int(np.prod(shape)) if stride is None else 0
    if stride is not None:
        count = 1 + sum((d - 1) * s for d, s in zip(shape, stride)) if 0 not in shape else 0
    dtype = getattr(torch, dtype)
    values = torch.from_numpy(storage(stream, count, rest.split()))
    # float64 -> float32 -> half, as the Rust side rounds.
    if dtype in (torch.float16, torch.bfloat16):
        values = values.to(torch.float32)
    flat = values.to(dtype).to(device)
    return flat.reshape(shape) if stride is None else flat.as_strided(shape, stride)


def header(path: Path, device: str):
    wrapper, inputs, names, tolerance, expect = None, [], [], None, []
    for line in path.read_text().splitlines():
        if line and not line.startswith("#"):
            break
        key, _, rest = line.lstrip("#").partition(":")
        rest = rest.strip()
        if key.strip() == "wrapper":
            wrapper = rest
        elif key.strip() == "input":
            inputs.append(tensor(len(inputs), rest, device))
        elif key.strip() == "value":
            inputs.append(ast.literal_eval(rest))
        elif key.strip() == "tolerance":
            tolerance = float(rest)
        elif key.strip() == "expect":
            expect = rest.split()
    return wrapper, inputs, tolerance, expect


class FirstConfig:
    """Stands in for the autotuner, which needs a GPU to measure: the first configuration is used."""

    def __init__(self, function, config):
        self.function, self.config = function, config

    def __getitem__(self, grid):
        return lambda *args, **kwargs: self.function[grid](*args, **kwargs, **self.config.kwargs)


def load(path: Path):
    if os.environ.get("TRITON_INTERPRET") == "1":
        triton.autotune = lambda configs, **_: lambda function: FirstConfig(function, configs[0])
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


def run(path: Path, device: str):
    wrapper, inputs, tolerance, expect = header(path, device)
    module = load(path)
    function = getattr(module, wrapper)
    started = time.perf_counter()
    result = function(*inputs)
    seconds = time.perf_counter() - started
    outputs = result if isinstance(result, (tuple, list)) else (result,)
    return [o.contiguous().cpu() for o in outputs], tolerance, expect, seconds


def fixtures(folder: Path):
    return [p for p in sorted(folder.rglob("*.py"))]


def golden(args) -> int:
    tensors, failed = {}, 0
    for path in fixtures(args.folder):
        try:
            outputs, _, expect, _ = run(path, args.device)
        except Exception as error:  # noqa: BLE001 - any failure of a fixture is reported and the rest go on
            print(f"{path.stem}: {type(error).__name__}: {error}", file=sys.stderr)
            failed += 1
            continue
        if expect:
            continue
        for index, output in enumerate(outputs):
            tensors[f"{path.stem}.{index}"] = output.clone()
    save_file(tensors, args.out)
    print(f"{len(tensors)} tensors, {failed} fixtures failed")
    return 1 if failed else 0


def worst_error(ours: torch.Tensor, theirs: torch.Tensor) -> float:
    if ours.shape != theirs.shape or ours.dtype != theirs.dtype:
        return float("inf")
    if not theirs.dtype.is_floating_point:
        return 0.0 if torch.equal(ours, theirs) else float("inf")
    a, b = ours.double(), theirs.double()
    same = (a == b) | (a.isnan() & b.isnan())
    error = (a - b).abs() / b.abs().clamp(min=1.0)
    return float(torch.where(same, 0.0, error.nan_to_num(float("inf"))).max()) if a.numel() else 0.0


LIMIT = {torch.float16: 2e-3, torch.bfloat16: 1.6e-2, torch.float32: 2e-6, torch.float64: 1e-12}


def dump(passnet: str, path: Path, folder: str):
    out = Path(folder) / f"{path.stem}.safetensors"
    command = [passnet, "kernel", "run", str(path), "--dump", str(out), "--json"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(done.stderr.strip() or done.stdout.strip())
    return load_file(out), json.loads(done.stdout.splitlines()[-1])


def compare(args) -> int:
    bad = 0
    checked = 0
    with tempfile.TemporaryDirectory() as folder:
        for path in fixtures(args.folder):
            try:
                theirs, tolerance, expect, _ = run(path, args.device)
                if expect:
                    continue
                ours, _ = dump(args.passnet, path, folder)
                worst = 0.0
                for index, output in enumerate(theirs):
                    error = worst_error(ours[f"output.{index}"], output)
                    worst = max(worst, error / (tolerance or LIMIT.get(output.dtype, 1e-30)))
                checked += 1
                if worst > 1.0:
                    bad += 1
                    print(f"{path.stem}: {worst:.3g} times the allowed error")
            except Exception as error:  # noqa: BLE001
                bad += 1
                print(f"{path.stem}: {type(error).__name__}: {error}")
    print(f"{checked} kernels agree with Triton {checked - bad}, differ {bad}")
    return 1 if bad else 0


def bench(args) -> int:
    ratios = []
    with tempfile.TemporaryDirectory() as folder:
        for path in fixtures(args.folder):
            try:
                _, _, expect, seconds = run(path, args.device)
                if expect:
                    continue
                _, report = dump(args.passnet, path, folder)
            except Exception as error:  # noqa: BLE001
                print(f"{path.stem}: {type(error).__name__}: {error}")
                continue
            ours = report["run_seconds"]
            ratios.append(seconds / ours)
            print(f"{path.stem:32} {seconds * 1e3:10.2f} ms {ours * 1e6:10.1f} us {seconds / ours:10.0f}x")
    print(f"geometric mean over {len(ratios)} kernels: {np.exp(np.mean(np.log(ratios))):.0f}x")
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("mode", choices=["golden", "compare", "bench"])
    parser.add_argument("folder", type=Path)
    parser.add_argument("out", nargs="?", type=Path)
    parser.add_argument("--passnet", default="passnet")
    parser.add_argument("--cuda", action="store_true")
    args = parser.parse_args()
    args.device = "cuda" if args.cuda else "cpu"
    if args.mode == "golden" and args.out is None:
        parser.error("golden needs an output file")
    return {"golden": golden, "compare": compare, "bench": bench}[args.mode](args)


if __name__ == "__main__":
    sys.exit(main())
