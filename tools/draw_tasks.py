#!/usr/bin/env python3
"""Draws tasks that nobody chose: the first N of an export in the order of the SHA-256 of a text and their paths.

    passnet dataset build --from graphnet-public.tar.zst --store d.pnds --kind fusible --no-shapes --evaluation 150
    passnet dataset export d.pnds --out exported
    tools/draw_tasks.py exported/sample_lists/fusible_eval.txt tasks --text "2026-11-18 16:45" --tasks 50 --mib 128
    passnet solve tasks/* --no-tune --no-bench --for-gpu --out solved
    passnet bench tasks/* --passes solved/passes --engine torch --device cuda --quick --seconds 0.1 --out runs/solver
    passnet bench tasks/* --compiler inductor --engine torch --device cuda --quick --seconds 0.1 --out runs/inductor
    tools/figures take solver-h200 runs/solver runs/inductor

Of each task the graph with the largest inputs is kept (with `--smallest` the one with the smallest), as long as they have
at most so many MiB together. Tasks can be drawn from several lists at once.
"""

import argparse
import hashlib
import math
import re
import shutil
from pathlib import Path

TENSOR = re.compile(r"shape = \[([^\]]*)\].*?dtype = ['\"](?:torch\.)?(\w+)", re.DOTALL)
BYTES = {"float64": 8, "int64": 8, "float32": 4, "int32": 4, "float16": 2, "bfloat16": 2, "int16": 2}


def mib_of_inputs(graph: Path) -> float:
    metas = [graph / name for name in ("weight_meta.py", "input_meta.py")]
    text = "".join(meta.read_text() for meta in metas if meta.exists())
    sizes = lambda shape: (int(size) for size in shape.split(",") if size.strip().isdigit())  # noqa: E731
    return sum(math.prod(sizes(shape)) * BYTES.get(dtype, 1) for shape, dtype in TENSOR.findall(text)) / 2**20


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("lists", type=Path, nargs="+", help="lists of samples of `passnet dataset export`")
    parser.add_argument("out", type=Path, help="a folder that is not there yet")
    parser.add_argument("--text", required=True, help="what decides: say it with the figure")
    parser.add_argument("--tasks", type=int, default=50)
    parser.add_argument("--mib", type=float, default=128.0)
    parser.add_argument("--smallest", action="store_true", help="keep the smallest graph of each task")
    given = parser.parse_args()
    given.out.mkdir(parents=True)
    choose = min if given.smallest else max
    lines = [(line, path.parent.parent / line) for path in given.lists for line in path.read_text().split()]
    drawn = 0
    for _, task in sorted(lines, key=lambda line: hashlib.sha256(f"{given.text} {line[0]}".encode()).hexdigest()):
        # One structure can stand in lists of two kinds.
        to = given.out / task.name
        if to.exists():
            continue
        graphs = [(task / name).resolve() for name in (task / "graph_list.txt").read_text().split()]
        fitting = [(size, graph) for graph in graphs if (size := mib_of_inputs(graph)) <= given.mib]
        if not fitting or drawn == given.tasks:
            continue
        shutil.copytree(choose(fitting)[1], to / "graphs/g0")
        (to / "graph_list.txt").write_text("graphs/g0\n")
        drawn += 1
    print(f"{drawn} tasks")


if __name__ == "__main__":
    main()
