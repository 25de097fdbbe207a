"""The table of docs/h200.md from runs on one machine; the third one is optional.

    passnet bench bench/tasks --passes bench/passes --engine torch --device cuda --out runs/passes
    passnet bench bench/tasks --compiler inductor --engine torch --device cuda --quick --out runs/inductor
    passnet bench bench/tasks --compiler eager --engine torch --device cuda --quick --out runs/eager
    python tools/gpu_table.py --passnet target/release/passnet runs/passes runs/inductor runs/eager

`--classes` prints means by size and kind of work instead of a line for each graph.
"""

import argparse
import json
import math
import statistics
import subprocess
from pathlib import Path


def graphs(run: Path) -> dict[str, dict]:
    """The last result of every graph that was timed."""
    found = {}
    for line in (run / "events.jsonl").read_text().splitlines():
        event = json.loads(line)
        if event.get("event") == "graph":
            found[f"{event['sample']}/{event['graph'].removeprefix('graphs/')}"] = event
    return found


def microseconds(event: dict | None, side: str) -> float | None:
    times = event.get(f"{side}_ms") if event else None
    return statistics.median(times) * 1e3 if times else None


def cost(event: dict | None, side: str, part: str) -> float | None:
    value = event.get(f"{side}_costs", {}).get(f"{part}_ms") if event else None
    return None if value is None else value * 1e3


def mean(values: list[float]) -> float:
    return math.exp(sum(map(math.log, values)) / len(values)) if values else float("nan")


# Work that eager and TorchInductor leave to a library.
PRODUCTS = {
    "addmm", "baddbmm", "bmm", "conv1d", "conv2d", "conv3d", "conv_transpose2d", "einsum", "linear", "matmul",
    "multi_head_attention", "scaled_dot_product_attention",
}
SIZES = ((0, 1e6, "below 1 MB"), (1e6, 1e7, "1 to 10 MB"), (1e7, 5e7, "10 to 50 MB"), (5e7, math.inf, "from 50 MB on"))


def print_classes(passes: dict[str, dict], inductor: dict[str, dict]) -> None:
    """Means over the graphs that both have right."""
    def is_timed(event: dict | None) -> bool:
        return bool(event) and event["verdict"] == "correct" and cost(event, "candidate", "device") is not None

    both = [name for name in passes if is_timed(passes[name]) and is_timed(inductor.get(name))]
    print(f"\n{len(both)} graphs that both have right, geometric means.\n\n| | passes | TorchInductor |\n|---|---|---|")
    sides = (passes, inductor)
    rows = {
        "over eager, end to end": lambda run, name: run[name]["speedup"],
        "host, µs": lambda run, name: cost(run[name], "candidate", "host"),
        "device, µs": lambda run, name: cost(run[name], "candidate", "device"),
    }
    for title, value in rows.items():
        print(f"| {title} | " + " | ".join(f"{mean([value(run, name) for name in both]):.2f}" for run in sides) + " |")
    known = [name for name in both if passes[name].get("roofline_ms")]
    shares = [mean([passes[n]["roofline_ms"] * 1e3 / cost(run[n], "candidate", "device") for n in known]) for run in sides]
    print(f"| share of the roofline | {shares[0]:.2f} | {shares[1]:.2f} |")
    slow = [sum(1 for name in both if run[name]["speedup"] < 0.95) for run in sides]
    print(f"| below 0.95 of eager | {slow[0]} | {slow[1]} |")

    def has_product(name: str) -> bool:
        return not PRODUCTS.isdisjoint(passes[name]["operations"])

    classes = {"all": both, "with a product": list(filter(has_product, both))}
    classes["without one"] = [name for name in both if not has_product(name)]
    for low, high, title in SIZES:
        classes[title] = [name for name in both if low <= passes[name].get("work", {}).get("bytes", -1) < high]
    print("\n| device time, passes / TorchInductor | graphs | ratio |\n|---|---|---|")
    for title, names in classes.items():
        ratios = [cost(passes[n], "candidate", "device") / cost(inductor[n], "candidate", "device") for n in names]
        print(f"| {title} | {len(names)} | {mean(ratios):.2f} |")


def shown(value: float | None) -> str:
    return "-" if value is None else f"{value:.1f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--passnet", required=True)
    parser.add_argument("passes", type=Path)
    parser.add_argument("inductor", type=Path)
    parser.add_argument("eager", type=Path, nargs="?")
    parser.add_argument("--classes", action="store_true")
    arguments = parser.parse_args()
    paths = {"passes": arguments.passes, "TorchInductor": arguments.inductor}
    if arguments.eager:
        paths["eager against itself"] = arguments.eager
    runs = {name: graphs(path) for name, path in paths.items()}

    print("| against eager | graphs | correct | AS | speed-up | " + " | ".join(f"ES({t})" for t in (-8, -6, -5, -4, 0, 4)) + " |")
    print("|---|" + "---|" * 10)
    for name, run in runs.items():
        text = subprocess.run([arguments.passnet, "score", str(paths[name]), "--json"], stdout=subprocess.PIPE, check=True).stdout
        score = json.loads(text)
        speedups = [e["speedup"] for e in run.values() if e.get("verdict") == "correct" and e.get("speedup")]
        correct = sum(e.get("verdict") == "correct" for e in run.values())
        curve = " | ".join(f"{score['es'][str(t)]:.3f}" for t in (-8, -6, -5, -4, 0, 4))
        print(f"| {name} | {len(run)} | {correct} | {score['as']:.3f} | {mean(speedups):.3f} | {curve} |")

    passes, inductor = runs["passes"], runs["TorchInductor"]
    if arguments.classes:
        print_classes(passes, inductor)
        return
    rows = []
    for name in sorted(passes):
        own, other = passes[name], inductor.get(name)
        rows.append([
            microseconds(own, "eager"), microseconds(other, "candidate"), microseconds(own, "candidate"),
            cost(own, "eager", "host"), cost(other, "candidate", "host"), cost(own, "candidate", "host"),
            cost(own, "eager", "device"), cost(other, "candidate", "device"), cost(own, "candidate", "device"),
        ])
    print("\nMicroseconds of one call: end to end (synchronised), the host alone, the device alone.\n")
    print("| graph | eager | Inductor | pass | host: eager | Inductor | pass | device: eager | Inductor | pass |")
    print("|---|" + "---|" * 9)
    means = [mean([row[i] for row in rows if row[i]]) for i in range(9)]
    print("| geometric mean | " + " | ".join(map(shown, means)) + " |")
    for name, row in zip(sorted(passes), rows, strict=True):
        print(f"| {name} | " + " | ".join(map(shown, row)) + " |")


if __name__ == "__main__":
    main()
