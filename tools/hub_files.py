#!/usr/bin/env python3
"""Writes the rows of PassNet's hub dataset back as files, for `passnet dataset import`.

    python tools/hub_files.py download/*.parquet --out PassNet
    passnet dataset import PassNet --store published.pnds

A row has `path` and `content`. Parquet needs `pip install pyarrow`; JSON lines (`.jsonl`) need nothing. Rows are not
trusted: a path that is absolute, climbs with `..` or leads through a link is refused. Running it again completes it.
"""

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path, PurePosixPath


class BadRow(Exception):
    """A row that cannot become a file."""


def rows(source: Path) -> Iterator[tuple[object, object]]:
    """Path and content of each row of a file."""
    if source.suffix == ".jsonl":
        with source.open(encoding="utf-8") as lines:
            for number, line in enumerate(lines, 1):
                if line.strip():
                    try:
                        row = json.loads(line)
                    except ValueError as error:
                        raise BadRow(f"{source}:{number}: not JSON: {error}") from error
                    yield row.get("path"), row.get("content")
        return
    try:
        from pyarrow import parquet
    except ImportError as error:
        raise BadRow(f"{source}: Parquet needs `pip install pyarrow`") from error
    for batch in parquet.ParquetFile(source).iter_batches(columns=["path", "content"]):
        columns = batch.to_pydict()
        yield from zip(columns["path"], columns["content"])


def place(out: Path, path: object) -> Path:
    """Where a row goes, below `out`."""
    if not isinstance(path, str) or not path or "\0" in path:
        raise BadRow(f"{path!r} is no path")
    parts = PurePosixPath(path)
    if parts.is_absolute() or ".." in parts.parts or not parts.parts:
        raise BadRow(f"{path!r} leads out of the folder")
    target = out
    for part in parts.parts:
        target = target / part
        if target.is_symlink():
            raise BadRow(f"{path!r} leads through a link")
    return target


def write(out: Path, path: object, content: object) -> None:
    target = place(out, path)
    if content is None:
        content = ""
    data = content if isinstance(content, bytes) else str(content).encode("utf-8")
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(data)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rows", nargs="+", type=Path, help="files with rows: .parquet or .jsonl")
    parser.add_argument("--out", required=True, type=Path, help="the folder to write to")
    options = parser.parse_args(arguments)
    count = 0
    try:
        for source in options.rows:
            for path, content in rows(source):
                write(options.out, path, content)
                count += 1
    except (BadRow, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print(f"{count} files written to {options.out}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
