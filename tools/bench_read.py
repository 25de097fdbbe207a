"""How fast graphs are read, against CPython, in one run over the same files.

PassNet parses `model.py` and the metadata of every graph, builds the graph and hashes it at three levels
(`passnet graph hash`, as many threads as the machine has cores). CPython does less: `ast.parse` of `model.py`
and `exec` of `weight_meta.py`, one process. Both read files that are already in the page cache.

    python tools/bench_read.py --passnet target/release/passnet GRAPHS

Prints the times, the throughputs and the ratio; the machine's load moves the times, hardly the ratio.
"""

from __future__ import annotations

import argparse
import ast
import subprocess
import time
from pathlib import Path


def cpython_seconds(models: list[Path]) -> float:
    start = time.perf_counter()
    for model in models:
        ast.parse(model.read_text())
        metas = model.with_name("weight_meta.py")
        if metas.exists():
            exec(compile(metas.read_text(), str(metas), "exec"), {})  # noqa: S102 (the thing measured)
    return time.perf_counter() - start


def passnet_seconds(binary: str, root: Path) -> float:
    start = time.perf_counter()
    subprocess.run([binary, "graph", "hash", str(root)], check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - start


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
    passnet_seconds(args.passnet, args.root)  # fills the page cache for both
    ours = sorted(passnet_seconds(args.passnet, args.root) for _ in range(args.rounds))[args.rounds // 2]
    theirs = cpython_seconds(models)
    print(f"{len(models)} graphs, {size / 1e6:.0f} MB of model.py and weight_meta.py")
    print(f"passnet graph hash           {ours:8.2f} s  {size / 1e6 / ours:7.1f} MB/s")
    print(f"CPython ast.parse + exec     {theirs:8.2f} s  {size / 1e6 / theirs:7.1f} MB/s")
    print(f"ratio                        {theirs / ours:8.1f} x")


if __name__ == "__main__":
    main()
