#!/usr/bin/env python3
"""What has been captured of the catalogue so far, on whatever machines, whenever: one line a model, kept in the repository.

    passnet extract --catalogue all --list-only --out all.jsonl
    python tools/capture_record.py left all.jsonl > left.jsonl
    passnet extract --list left.jsonl --out captured/ --jobs 2 --seconds 3600
    python tools/capture_record.py add captured/ --run "2026-11-19, 2 cores" --passnet target/release/passnet
    python tools/capture_record.py table

Ten hours of captures are seldom had at once, and graphs of models are not kept in the repository. The record keeps of each model
whether it was captured, or why not, what that took, and the digests of its graphs as `passnet graph hash` gives them, shortened. So
different graphs can be counted over runs that never met, and anyone can capture a model again and compare. A record is of one list of
requirements: other versions of packages give other graphs.
"""

import argparse
import csv
import hashlib
import json
import statistics
import subprocess
import sys
from collections import Counter, defaultdict
from dataclasses import astuple, dataclass, fields
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
RECORD = ROOT / "docs/figures/captures.csv"
REQUIREMENTS = ROOT / "python/passnet/extract/requirements.txt"
LEVELS = ("structure", "literals", "full")
MEANINGS = {
    "full": "operations, flow, literals, shapes and dtypes",
    "literals": "operations, flow and literals",
    "structure": "operations and flow",
}
# 48 bits of a digest: among 20,000 graphs, two are taken for one with a chance of one in a million.
DIGITS = 12


class Refused(Exception):
    """What is wrong with what was given."""


@dataclass(frozen=True)
class Line:
    model: str
    source: str
    # `captured`, or the kind of failure.
    outcome: str
    cpu_seconds: float
    peak_mb: int
    # For each graph its three digests, joined by colons; graphs joined by spaces.
    graphs: str
    run: str

    def digests(self, level: str) -> list[str]:
        return [graph.split(":")[LEVELS.index(level)] for graph in self.graphs.split()]


def requirements() -> str:
    return "requirements " + hashlib.sha256(REQUIREMENTS.read_bytes()).hexdigest()[:16]


def read(path: Path) -> dict[str, Line]:
    """The record by model; empty if there is none yet."""
    if not path.exists():
        return {}
    first, *rest = path.read_text().splitlines()
    if first != "# " + requirements():
        raise Refused(f"{path}:1: `{first}`, but these are `{requirements()}`: begin a new record with --record")
    lines = {}
    for number, row in enumerate(csv.DictReader(rest), start=3):
        try:
            line = Line(**{**row, "cpu_seconds": float(row["cpu_seconds"]), "peak_mb": int(row["peak_mb"])})
        except (KeyError, TypeError, ValueError) as error:
            raise Refused(f"{path}:{number}: no line of a record ({error})") from None
        lines[line.model] = line
    return lines


def write(path: Path, lines: dict[str, Line]) -> None:
    """In the order of models, so that two records of the same captures are the same bytes."""
    partial = path.with_suffix(".partial")
    with partial.open("w", newline="") as file:
        file.write(f"# {requirements()}\n")
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(field.name for field in fields(Line))
        writer.writerows(astuple(lines[model]) for model in sorted(lines))
    partial.replace(path)


def digests(passnet: str, captured: Path) -> dict[str, list[str]]:
    """The digests of every graph, by model."""
    samples = captured / "samples"
    hashes = subprocess.run([passnet, "graph", "hash", "--json", str(samples)], stdout=subprocess.PIPE, text=True)
    # 1: some graph cannot be read; its line says why.
    if hashes.returncode not in (0, 1):
        raise Refused(f"`{passnet} graph hash` ended with {hashes.returncode}")
    graphs = defaultdict(list)
    for text in hashes.stdout.splitlines():
        graph = json.loads(text)
        if "full" in graph:
            family, name = Path(graph["path"]).relative_to(samples).parts[:2]
            graphs[f"{family}/{name}"].append(":".join(graph[level][:DIGITS] for level in LEVELS))
    return graphs


def add(given: argparse.Namespace) -> None:
    lines = read(given.record)
    before = len(lines)
    results = given.captured / "results.jsonl"
    if not results.exists():
        raise Refused(f"{results}: not found; name the folder of an extraction")
    found = digests(given.passnet, given.captured)
    said = results.read_text().splitlines()
    for number, text in enumerate(said, start=1):
        try:
            line = told(json.loads(text), found, given.run)
        except (KeyError, TypeError, ValueError) as error:
            if number == len(said):
                # A kill may have torn it: that model is tried again.
                break
            raise Refused(f"{results}:{number}: no line of an extraction ({error})") from None
        if line.outcome == "captured" and not line.graphs:
            raise Refused(f"{results}:{number}: `{line.model}` was captured, but {given.captured}/samples has no graph of it that can be read")
        lines[line.model] = line
    write(given.record, lines)
    print(f"{len(lines) - before} models more, {len(lines)} in all")


def told(said: dict, found: dict[str, list[str]], run: str) -> Line:
    """What a line of an extraction's results says of a model."""
    captured = said["outcome"] == "captured"
    return Line(
        model=said["id"],
        source=said["source"],
        outcome="captured" if captured else said["kind"],
        cpu_seconds=float(said.get("cpu_seconds", 0)),
        peak_mb=int(said.get("peak_mb", 0)),
        graphs=" ".join(sorted(found.get(said["id"], []))) if captured else "",
        run=run,
    )


def left(given: argparse.Namespace) -> None:
    lines = read(given.record)
    for number, text in enumerate(given.list.read_text().splitlines(), start=1):
        try:
            entry = json.loads(text)
            model = f"{entry['family']}/{entry['name']}"
        except (KeyError, TypeError, ValueError) as error:
            raise Refused(f"{given.list}:{number}: no line of a list of models ({error})") from None
        if model not in lines:
            print(text)


def table(given: argparse.Namespace) -> None:
    lines = list(read(given.record).values())
    if not lines:
        raise Refused(f"{given.record}: no record yet")
    print("| source | tried | captured | graphs | mean processor seconds |\n|---|---|---|---|---|")
    sources = Counter(line.source for line in lines).most_common()
    for name, of_source in [(name, [line for line in lines if line.source == name]) for name, _ in sources] + [("all", lines)]:
        captured = [line for line in of_source if line.outcome == "captured"]
        graphs = sum(len(line.graphs.split()) for line in captured)
        seconds = f"{statistics.mean(line.cpu_seconds for line in captured):.1f}" if captured else ""
        print(f"| {name} | {len(of_source):,} | {len(captured):,} | {graphs:,} | {seconds} |")
    failures = Counter(line.outcome for line in lines if line.outcome != "captured")
    print("\n" + ", ".join(f"{count} {kind}" for kind, count in failures.most_common()) + "\n")
    print("| graphs are the same if they have the same | different ones |\n|---|---|")
    for level, meaning in MEANINGS.items():
        different = {digest for line in lines for digest in line.digests(level)}
        print(f"| {meaning} | {len(different):,} |")
    captured = sorted((line.cpu_seconds, line.peak_mb) for line in lines if line.outcome == "captured")
    seconds, memory = ([pair[part] for pair in captured] for part in (0, 1))
    print(f"\nProcessor seconds of a captured model: {spread(seconds, '.1f')}, {sum(seconds) / 3600:.1f} hours in all;")
    print(f"resident memory: {spread(sorted(memory), ',.0f')} MB.")
    for run, count in sorted(Counter(line.run for line in lines).items()):
        print(f"{run}: {count:,} models.")


def spread(ordered: list[float], form: str) -> str:
    at = lambda share: format(ordered[min(int(share * len(ordered)), len(ordered) - 1)], form)  # noqa: E731
    return f"median {at(0.5)}, 90 % {at(0.9)}, largest {at(1)}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--record", type=Path, default=RECORD)
    does = parser.add_subparsers(required=True)
    adding = does.add_parser("add", help="take the results of an extraction into the record")
    adding.add_argument("captured", type=Path, help="the folder given to `passnet extract --out`")
    adding.add_argument("--run", required=True, help="when and on what: it stands beside each model")
    adding.add_argument("--passnet", default="passnet")
    adding.set_defaults(do=add)
    leaving = does.add_parser("left", help="the lines of a list of models that the record lacks")
    leaving.add_argument("list", type=Path)
    leaving.set_defaults(do=left)
    does.add_parser("table", help="the counts, as docs/extraction.md has them").set_defaults(do=table)
    given = parser.parse_args()
    try:
        given.do(given)
    except (OSError, Refused) as refused:
        print(f"error: {refused}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
