"""Parity checks against PyTorch: `python -m passnet.parity COMMAND`.

`shapes` compares inferred types with PyTorch's, `print` runs printed graphs against their
originals, `golden-shapes` writes the expectations of the one-op cases.
Exit codes: 0 all equal, 1 something differs, 2 bad usage or input.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path

from .opcases import CaseError, rewrite

CASES = Path(__file__).resolve().parents[2] / "crates" / "passnet-graph" / "tests" / "ops"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m passnet.parity", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    golden = commands.add_parser("golden-shapes", help="write what PyTorch says of each one-op case")
    golden.add_argument("folder", nargs="?", type=Path, default=CASES)
    golden.add_argument("--check", action="store_true", help="write nothing; fail on a difference")
    golden.add_argument("--verbose", action="store_true", help="show where meta and CPU disagree")
    golden.set_defaults(run=golden_shapes)
    options = parser.parse_args(arguments)
    warnings.simplefilter("ignore")
    return options.run(options)


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
