"""Run the kernel fixtures under Triton itself and compare with ours.

    python -m passnet.kernels.triton_parity golden crates/passnet-kernel/tests/kernels OUT.safetensors
    python -m passnet.kernels.triton_parity compare crates/passnet-kernel/tests/kernels --passnet target/release/passnet
    python -m passnet.kernels.triton_parity bench crates/passnet-kernel/tests/kernels --passnet target/release/passnet

Each fixture describes its inputs in its header; the data come from a counter-based generator that the Rust
side repeats bit for bit. Without a GPU the kernels run in Triton's interpreter; with `--cuda` they are compiled.
"""

import argparse
import json
import math
import os
import subprocess
import sys
import tempfile
from pathlib import Path

if "--cuda" not in sys.argv:
    os.environ["TRITON_INTERPRET"] = "1"

import torch  # noqa: E402
from safetensors.torch import load_file, save_file  # noqa: E402

from passnet.kernels.triton_fixtures import fixtures, run, worst_error  # noqa: E402


def golden(args) -> int:
    tensors, failed = load_file(args.out) if args.add else {}, 0
    for path in fixtures(args.folder):
        if args.add and f"{path.stem}.0" in tensors:
            continue
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
                    limit = LIMIT.get(output.dtype, 0.0) if tolerance is None else tolerance
                    worst = max(worst, error / max(limit, 1e-30))
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
    print(f"geometric mean over {len(ratios)} kernels: {math.exp(sum(map(math.log, ratios)) / len(ratios)):.0f}x")
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("mode", choices=["golden", "compare", "bench"])
    parser.add_argument("folder", type=Path)
    parser.add_argument("out", nargs="?", type=Path)
    parser.add_argument("--passnet", default="passnet")
    parser.add_argument("--cuda", action="store_true")
    parser.add_argument("--add", action="store_true", help="golden: keep what OUT has, add what it lacks")
    args = parser.parse_args()
    args.device = "cuda" if args.cuda else "cpu"
    if args.mode == "golden" and args.out is None:
        parser.error("golden needs an output file")
    return {"golden": golden, "compare": compare, "bench": bench}[args.mode](args)


if __name__ == "__main__":
    sys.exit(main())
