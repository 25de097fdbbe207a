"""Graphs evaluated per minute, against the reference's method, in one run over the same graphs on the CPU.

The reference starts one Python with PyTorch for every graph, compiles the model with torch.compile and a backend that
hands the graph on, then calls both sides 25 + 100 times. That is done here for every STEP-th graph of the tasks (an odd
number, because tasks have four graphs each and all types and sizes should be among them); `passnet bench` evaluates all of
them with their passes (and asks much more).

    python tools/bench_throughput.py --passnet target/release/passnet [--step 3] [--engine torch] bench/tasks bench/passes
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path

WARMUP, TRIALS = 25, 100
REPOSITORY = Path(__file__).resolve().parents[1]


def reference_method(folder: Path) -> None:
    """What the reference's runner does for one graph, in a process of its own."""
    import importlib.util
    import statistics

    import torch

    sys.path.insert(0, str(REPOSITORY / "python"))
    from passnet.graphs.replay import replay_inputs

    torch.manual_seed(123)
    spec = importlib.util.spec_from_file_location("model", folder / "model.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    model = module.GraphModule()
    inputs = replay_inputs(folder)
    compiled = torch.compile(model, backend=lambda graph, _: graph.forward)

    def measure(call) -> float:
        times = []
        for trial in range(WARMUP + TRIALS):
            torch.manual_seed(1024)
            start = time.perf_counter()
            call(**inputs)
            if trial >= WARMUP:
                times.append(time.perf_counter() - start)
        return statistics.median(times)

    with torch.no_grad():
        measure(compiled), measure(model)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--passnet", required=True, help="a release build of passnet")
    parser.add_argument("--step", type=int, default=3, help="the reference's method is run on every so many graphs")
    parser.add_argument("--threads", type=int, default=2, help="threads of PyTorch")
    parser.add_argument("--engine", default="native", choices=["native", "torch"], help="the engine of passnet bench")
    parser.add_argument("tasks", type=Path)
    parser.add_argument("passes", type=Path)
    arguments = parser.parse_args()

    graphs = sorted(
        task / line
        for task in sorted(arguments.tasks.iterdir())
        if (task / "graph_list.txt").exists()
        for line in (task / "graph_list.txt").read_text().split()
    )
    start = time.perf_counter()
    command = [arguments.passnet, "bench", str(arguments.tasks), "--passes", str(arguments.passes), "--json"]
    if arguments.engine == "torch":
        command += ["--engine", "torch", "--python", sys.executable]
    output = subprocess.run(command, stdout=subprocess.PIPE, check=False).stdout
    ours = len(graphs) / (time.perf_counter() - start) * 60
    correct = sum(graph["verdict"] == "correct" for graph in json.loads(output)["graphs"])

    chosen = graphs[:: arguments.step]
    start = time.perf_counter()
    for graph in chosen:
        environment = {"OMP_NUM_THREADS": str(arguments.threads)}
        subprocess.run([sys.executable, __file__, "--one", str(graph)], check=True, env={**os.environ, **environment})
    theirs = len(chosen) / (time.perf_counter() - start) * 60

    print(f"passnet bench           {ours:8.1f} graphs a minute ({len(graphs)} graphs, {correct} correct)")
    print(f"a process for each graph {theirs:7.1f} graphs a minute ({len(chosen)} graphs)")
    print(f"ratio                   {ours / theirs:8.1f}")


if __name__ == "__main__":
    if len(sys.argv) == 3 and sys.argv[1] == "--one":
        reference_method(Path(sys.argv[2]))
    else:
        main()
