"""The results file: one JSON line for each model that was tried, only ever appended to."""

from __future__ import annotations

import json
import os
from collections import Counter
from pathlib import Path
from typing import Any


class Results:
    def __init__(self, path: Path) -> None:
        self.path = path
        self.by_id = read(path)
        # A kill may have left half a line: the next one begins on a line of its own.
        self._torn = path.exists() and path.read_bytes()[-1:] not in (b"", b"\n")

    def append(self, record: dict[str, Any]) -> None:
        """One line, written at once: a kill leaves it whole or torn, and a torn line is passed over."""
        self.by_id[record["id"]] = record
        line = ("\n" if self._torn else "") + json.dumps(record, sort_keys=True) + "\n"
        self._torn = False
        handle = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        try:
            os.write(handle, line.encode())
        finally:
            os.close(handle)


def read(path: Path) -> dict[str, dict[str, Any]]:
    """The last record of each model. Lines that are no records are skipped."""
    records: dict[str, dict[str, Any]] = {}
    if not path.exists():
        return records
    for line in path.read_bytes().splitlines():
        try:
            record = json.loads(line)
        except ValueError:
            continue
        if isinstance(record, dict) and isinstance(record.get("id"), str):
            records[record["id"]] = record
    return records


def summary(records: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Counts by outcome, and failures by kind."""
    captured = [record for record in records.values() if record.get("outcome") == "captured"]
    kinds = Counter(r.get("kind", "unknown") for r in records.values() if r.get("outcome") != "captured")
    return {
        "tried": len(records),
        "captured": len(captured),
        "graphs": sum(int(record.get("graphs", 0)) for record in captured),
        "failed": dict(sorted(kinds.items(), key=lambda item: (-item[1], item[0]))),
    }
