"""Picks the tasks of the solver table in docs/figures/before.md.

    passnet dataset build --from MODELS --store d.pnds --kind fusible
    passnet dataset export d.pnds --kind fusible --out exported
    python tools/solver_tasks.py exported tasks
    for task in tasks/*; do passnet solve $task --seconds 0.2 --out solved/$(basename $task); done

MODELS are every twelfth of the corpus, by path. Picked are all evaluation tasks and every sixth training task, each with
its first graphs whose inputs are not too large.
"""

import argparse
import itertools
import math
import re
import shutil
from pathlib import Path

SHAPE = re.compile(r"^\s*shape\s*=\s*\[([^\]]*)\]", re.MULTILINE)


def input_elements(graph: Path) -> int:
    metas = [graph / name for name in ("input_meta.py", "weight_meta.py")]
    shapes = [sizes for meta in metas if meta.exists() for sizes in SHAPE.findall(meta.read_text())]
    return sum(math.prod(int(size) for size in sizes.split(",") if size.strip()) for sizes in shapes)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("exported", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--graphs", type=int, default=3, help="graphs of a task at the most")
    parser.add_argument("--max-elements", type=int, default=40_000_000, help="elements of all inputs of a graph")
    args = parser.parse_args()

    def paths(split: str) -> list[str]:
        return (args.exported / "sample_lists" / f"fusible_{split}.txt").read_text().split()

    picked = [(f"e{number:03}", path) for number, path in enumerate(paths("eval"))]
    picked += [(f"t{number}", path) for number, path in enumerate(paths("train")) if number % 6 == 3]
    tasks = graphs = 0
    for name, path in picked:
        listed = (args.exported / path / "graph_list.txt").read_text().split()
        small = (graph for graph in listed if input_elements(args.exported / graph) <= args.max_elements)
        kept = list(itertools.islice(small, args.graphs))
        if not kept:
            continue
        task = args.out / name
        (task / "pass_dir").mkdir(parents=True)
        for number, graph in enumerate(kept):
            shutil.copytree(args.exported / graph, task / "graphs" / f"g{number}")
        (task / "graph_list.txt").write_text("".join(f"graphs/g{number}\n" for number in range(len(kept))))
        (task / "sample_uids.txt").write_text(f"{tasks:032x}\n")
        tasks, graphs = tasks + 1, graphs + len(kept)
    print(f"{tasks} tasks, {graphs} graphs")


if __name__ == "__main__":
    main()
