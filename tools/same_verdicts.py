"""Verdicts of the same passes under two secrets: whatever a secret decides, a verdict must not depend on it.

    python tools/same_verdicts.py --passnet target/release/passnet bench/tasks --passes bench/passes
    python tools/same_verdicts.py --passnet target/release/passnet evaluation/samples/passnet/fusible --passes solved/passes

Prints every graph whose verdict differs, then one line that counts; the exit code is 1 where one differs. Further options
(`--engine torch --device cuda`) go to `passnet bench` as they are.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections import Counter


def verdicts(command: list[str]) -> tuple[str, dict[tuple[str, str], str]]:
    """Who judged, and the verdict of every graph."""
    done = subprocess.run(command, capture_output=True, text=True)
    # 1: some graph is not correct; 3: some graph was not judged, and is missing here.
    if done.returncode not in (0, 1, 3):
        sys.exit(f"{' '.join(command)}: exit code {done.returncode}\n{done.stderr}")
    result = json.loads(done.stdout)
    found = {(graph["sample"], graph["graph"]): graph["verdict"] for graph in result["graphs"]}
    return json.dumps(result["identity"], sort_keys=True), found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--passnet", required=True, help="the program")
    parser.add_argument("samples", nargs="+", help="tasks")
    parser.add_argument("--passes", help="a folder of passes for them; without it each sample's own")
    options, others = parser.parse_known_args()
    command = [options.passnet, "bench", *options.samples, "--json", *others]
    command += ["--passes", options.passes] if options.passes else []
    (identity, first), (_, second) = verdicts(command), verdicts(command)
    differing = sorted(graph for graph in first | second if first.get(graph) != second.get(graph))
    for graph in differing:
        print(f"{'/'.join(graph)}: {first.get(graph, 'not judged')}, then {second.get(graph, 'not judged')}")
    counts = ", ".join(f"{count} {verdict}" for verdict, count in Counter(first.values()).most_common())
    print(identity)
    print(f"{len(first)} graphs ({counts}), judged twice with secrets of their own: {len(differing)} verdicts differ")
    sys.exit(1 if differing else 0)


if __name__ == "__main__":
    main()
