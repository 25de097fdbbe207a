"""How fast graphs are read, against CPython, in one run over the same files.

PassNet parses `model.py` and the metadata of every graph, builds the graph and hashes it at three levels
(`passnet graph hash`, as many threads as the machine has cores). CPython does less: `ast.parse` of `model.py`
and `exec` of `weight_meta.py`, one process. Both read files that are already in the page cache.

    python tools/bench_read.py --passnet target/release/passnet GRAPHS

Prints times, throughputs and two ratios: of elapsed times, which other work on the machine moves, and of CPU
times, which it hardly does. The first is at most the second times the number of threads.
"""

from __future__ import annotations

import argparse
import ast
import resource
import subprocess
import time
from pathlib import Path
from typing import NamedTuple


class Cost(NamedTuple):
    elapsed: float
    cpu: float


def cpython_cost(models: list[Path]) -> Cost:
    start, cpu = time.perf_counter(), time.process_time()
    for model in models:
        ast.parse(model.read_text())
        metas = model.with_name("weight_meta.py")
        if metas.exists():
            exec(compile(metas.read_text(), str(metas), "exec"), {})  # noqa: S102 (the thing measured)
    return Cost(time.perf_counter() - start, time.process_time() - cpu)


def passnet_cost(binary: str, root: Path) -> Cost:
    def children() -> float:
        usage = resource.getrusage(resource.RUSAGE_CHILDREN)
        return usage.ru_utime + usage.ru_stime

    start, cpu = time.perf_counter(), children()
    subprocess.run([binary, "graph", "hash", str(root)], check=True, stdout=subprocess.DEVNULL)
    return Cost(time.perf_counter() - start, children() - cpu)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--passnet", required=True, help="a release build of passnet")
    parser.add_argument("--rounds", type=int, default=3, help="PassNet is run this often; the median counts")
    parser.add_argument("root", type=Path, help="a folder of graph folders")
    args = parser.parse_args()
    models = sorted(args.root.rglob("model.py"))
    size = sum(
        file.stat().st_size
        for model in models
        for file in (model, model.with_name("weight_meta.py"))
        if file.exists()
    )
    passnet_cost(args.passnet, args.root)  # fills the page cache for both
    rounds = sorted(passnet_cost(args.passnet, args.root) for _ in range(args.rounds))
    ours = rounds[args.rounds // 2]
    theirs = cpython_cost(models)
    print(f"{len(models)} graphs, {size / 1e6:.0f} MB of model.py and weight_meta.py")
    print("                           elapsed s      CPU s   MB/s of CPU")
    for name, cost in [("passnet graph hash", ours), ("CPython ast.parse + exec", theirs)]:
        print(f"{name:24} {cost.elapsed:11.2f} {cost.cpu:10.2f} {size / 1e6 / cost.cpu:13.1f}")
    print(f"{'ratio':24} {theirs.elapsed / ours.elapsed:10.1f}x {theirs.cpu / ours.cpu:9.1f}x")


if __name__ == "__main__":
    main()
