"""Parity checks against PyTorch: `python -m passnet.parity COMMAND`.

`shapes` compares inferred types with PyTorch's, `print` runs printed graphs against their
originals, `run` compares the native engine's outputs with PyTorch's, `golden-shapes` writes the
expectations of the one-op cases.
Exit codes: 0 all equal, 1 something differs, 2 bad usage or input.
"""

from __future__ import annotations

import argparse
import json
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path

from . import compare_print, compare_run, compare_shapes
from .op_cases import CaseError, rewrite

CASES = Path(__file__).resolve().parents[3] / "crates" / "passnet-graph" / "tests" / "ops"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m passnet.parity", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    golden = commands.add_parser(
        "golden-shapes", help="write what PyTorch says of each one-op case"
    )
    golden.add_argument("folder", nargs="?", type=Path, default=CASES)
    golden.add_argument("--check", action="store_true", help="write nothing; fail on a difference")
    golden.add_argument("--verbose", action="store_true", help="show where meta and CPU disagree")
    golden.set_defaults(run=golden_shapes)
    shapes = commands.add_parser("shapes", help="compare inferred types with PyTorch on meta")
    shapes.add_argument(
        "--torch-types", type=Path, help="reuse the output of `python -m passnet.graphs.shapes`"
    )
    shapes.set_defaults(run=shapes_parity)
    prints = commands.add_parser("print", help="run printed graphs against their originals")
    prints.add_argument("--limit", type=int, help="stop once this many graphs have run")
    prints.add_argument(
        "--max-elements",
        type=int,
        default=100_000_000,
        help="skip graphs whose inputs have more elements (default %(default)s)",
    )
    prints.set_defaults(run=print_parity)
    runs = commands.add_parser("run", help="compare the native engine's outputs with PyTorch's")
    runs.add_argument("--level", type=int, default=-5, help="level of the tolerance ladder (default -5)")
    runs.add_argument("--seed", type=int, default=compare_run.DEFAULT_SEED)
    runs.add_argument("--dtype", choices=["float16", "bfloat16", "float64"], help="type of float32 inputs")
    runs.add_argument(
        "--max-elements",
        type=int,
        default=100_000_000,
        help="skip graphs whose inputs have more elements (default %(default)s)",
    )
    runs.add_argument("--limit", type=int, help="take this many graphs, spread over all found")
    runs.set_defaults(run=run_parity)
    for command in (shapes, prints, runs):
        command.add_argument("--passnet", type=Path, required=True, help="the passnet binary")
        command.add_argument("--json", action="store_true", help="one JSON object on stdout")
        command.add_argument("paths", nargs="+", type=Path, help="graph folders or trees of them")
    options = parser.parse_args(arguments)
    warnings.simplefilter("ignore")
    return int(options.run(options))


def shapes_parity(options: argparse.Namespace) -> int:
    """Inferred types against PyTorch's, node by node."""
    try:
        report = compare_shapes.compare_shapes(options.passnet, options.paths, options.torch_types)
    except (compare_shapes.BinaryError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    show(options.json, compare_shapes.to_json(report), compare_shapes.to_table(report))
    return 1 if report.failed else 0


def print_parity(options: argparse.Namespace) -> int:
    """Outputs of printed graphs against those of their originals, bit by bit."""
    if not options.passnet.exists():
        print(f"error: no such file: {options.passnet}", file=sys.stderr)
        return 2
    report = compare_print.compare_prints(
        options.passnet, options.paths, options.limit, options.max_elements
    )
    show(options.json, compare_print.to_json(report), compare_print.to_table(report))
    return 1 if report.failed else 0


def run_parity(options: argparse.Namespace) -> int:
    """Outputs of the native engine against those of PyTorch's CPU kernels."""
    settings = compare_run.Options(
        options.level, options.seed, options.dtype, options.max_elements, options.limit
    )
    try:
        report = compare_run.compare_runs(options.passnet, options.paths, settings)
    except OSError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    show(options.json, compare_run.to_json(report), compare_run.to_table(report))
    return 1 if report.failed else 0


def show(as_json: bool, record: dict[str, object], table: str) -> None:
    print(json.dumps(record) if as_json else table)


def golden_shapes(options: argparse.Namespace) -> int:
    """Rewrite the `->` lines of every case file, or check that they would not change."""
    stale = total = 0
    files = sorted(options.folder.glob("*.txt"))
    if not files:
        print(f"no case files in {options.folder}", file=sys.stderr)
        return 2
    for path in files:
        try:
            text, count, notes = rewrite(path)
        except CaseError as error:
            print(f"error: {error}", file=sys.stderr)
            return 2
        changed = text != path.read_text(encoding="utf-8")
        stale += changed
        total += count
        print(f"{path.name:24} {count:5} ops{'  changed' if changed else ''}")
        if options.verbose:
            for note in notes:
                print(f"    {note.where}: {note.statement}  # {note.detail}")
        if changed and not options.check:
            path.write_text(text, encoding="utf-8")
    print(f"{len(files)} files, {total} ops, {stale} changed")
    return 1 if options.check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
