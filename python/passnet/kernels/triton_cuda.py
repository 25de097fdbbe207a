"""Kernel fixtures compiled by Triton for the GPU of this machine, against the goldens in the repository.

    cd python && python -m passnet.kernels.triton_cuda --json triton-cuda.json

needs PyTorch with CUDA and Triton, and nothing else: the kernels are `crates/passnet-kernel/tests/kernels`, the
goldens (made in Triton's interpreter, which our CPU code equals) `crates/passnet-kernel/tests/goldens.safetensors`.
`--jobs N` compiles in N processes. Compare with our own outputs instead of the goldens by `--ours FOLDER`, where
`passnet kernel run FIXTURE --dump FOLDER/STEM.safetensors` has written them.

Products of `float32` matrices are asked in full precision, as the interpreter computes them. Integers, booleans and
kernels that only move, compare or once add data (`# tolerance: 0`) must be equal. For the rest the GPU's own
approximations of exp, division and square root (a few units in the last place each) set the limit; the table shows
the worst error of each kernel.
"""

import argparse
import json
import multiprocessing
import os
import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

# Before Triton is imported.
os.environ.setdefault("TRITON_F32_DEFAULT", "ieee")

REPOSITORY = Path(__file__).resolve().parents[3]
TESTS = REPOSITORY / "crates" / "passnet-kernel" / "tests"


def compare(path: str, device: str, goldens: str | None, ours: str | None) -> dict:
    """One fixture, in a worker process."""
    import torch

    from passnet.kernels.triton_fixtures import read_safetensors, run, worst_error

    limits = {torch.float16: 2e-3, torch.bfloat16: 1.6e-2, torch.float32: 1e-5, torch.float64: 1e-11}
    path = Path(path)
    record = {"kernel": path.stem, "status": "equal", "outputs": []}
    try:
        outputs, tolerance, _, _ = run(path, device)
        expected = read_safetensors(Path(ours) / f"{path.stem}.safetensors" if ours else goldens)
    except Exception as error:  # noqa: BLE001 - any failure of a fixture is reported and the rest go on
        lines = str(error).strip().splitlines()
        return {**record, "status": "failed", "message": f"{type(error).__name__}: {lines[0] if lines else ''}"}
    for index, output in enumerate(outputs):
        golden = expected[f"output.{index}" if ours else f"{path.stem}.{index}"]
        error = worst_error(output, golden)
        # A fixture that asks for exactness gets it; a wider tolerance of its own is kept.
        limit = limits.get(output.dtype, 0.0)
        limit = limit if tolerance is None else tolerance and max(tolerance, limit)
        exact = bool(error == 0.0)
        record["outputs"].append(
            {"dtype": str(output.dtype).removeprefix("torch."), "elements": output.numel(), "worst": error, "limit": limit, "exact": exact}
        )
        if not error <= limit:
            record["status"] = "differs"
        elif not exact and record["status"] == "equal":
            record["status"] = "within rounding"
    return record


def table(records: list[dict]) -> str:
    rows = [("kernel", "result", "worst error", "limit", "dtypes")]
    for r in records:
        worst = max((o["worst"] for o in r["outputs"]), default=None)
        limit = max((o["limit"] for o in r["outputs"]), default=None)
        rows.append((
            r["kernel"], r["status"], "-" if worst is None else f"{worst:.1e}", "-" if limit is None else f"{limit:.1e}",
            r.get("message", ", ".join(sorted({o["dtype"] for o in r["outputs"]}))),
        ))
    widths = [max(len(row[i]) for row in rows) for i in range(4)]
    return "\n".join("  ".join([*(cell.ljust(w) for cell, w in zip(row, widths)), row[4]]) for row in rows)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kernels", type=Path, default=TESTS / "kernels")
    parser.add_argument("--goldens", type=Path, default=TESTS / "goldens.safetensors")
    parser.add_argument("--ours", type=Path, help="folder with our dumped outputs")
    parser.add_argument("--json", type=Path, help="write the records here")
    parser.add_argument("--jobs", type=int, default=min(8, os.cpu_count() or 1))
    parser.add_argument("--device", default="cuda", help="`cpu` runs Triton's interpreter, to try the script out")
    args = parser.parse_args()
    if args.device == "cpu":
        os.environ["TRITON_INTERPRET"] = "1"
    import torch
    import triton

    from passnet.kernels.triton_fixtures import fixtures

    if args.device != "cpu" and not torch.cuda.is_available():
        print("no CUDA device", file=sys.stderr)
        return 2
    paths = [str(p) for p in fixtures(args.kernels)]
    fixed = (args.device, str(args.goldens), str(args.ours) if args.ours else None)
    with ProcessPoolExecutor(args.jobs, multiprocessing.get_context("spawn")) as pool:
        records = list(pool.map(compare, paths, *([value] * len(paths) for value in fixed)))
    counts = {status: sum(r["status"] == status for r in records) for status in ("equal", "within rounding", "differs", "failed")}
    device = "Triton's interpreter" if args.device == "cpu" else torch.cuda.get_device_name()
    print(table(records))
    print(f"\n{len(records)} kernels on {device}, PyTorch {torch.__version__}, Triton {triton.__version__}: "
          + ", ".join(f"{count} {status}" for status, count in counts.items()))
    if args.json:
        report = {"device": device, "torch": torch.__version__, "triton": triton.__version__, "counts": counts, "kernels": records}
        args.json.write_text(json.dumps(report, indent=1) + "\n")
    return 1 if counts["differs"] + counts["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
