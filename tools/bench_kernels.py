"""Times the CPU execution of kernels against PyTorch eager, TorchInductor and Triton's interpreter, in one run.

    cargo build --release -p passnet-kernel --example time_kernels
    python tools/bench_kernels.py fused    --ours target/release/examples/time_kernels
    python tools/bench_kernels.py fixtures --ours target/release/examples/time_kernels
    python tools/bench_kernels.py first    --ours target/release/examples/time_kernels

`fused`: the kernels of crates/passnet-kernel/benches/kernels, each against its `reference` in PyTorch, eager and
compiled. The sides take turns round by round and each keeps its best round, so that other work on the machine hits
all alike. `eager` and `inductor` allocate their outputs as they always do; the columns marked `kept` ran with glibc
told to keep freed memory, so that no page is touched for the first time: the stricter comparison. `copy` is a plain
copy of as many bytes: the fraction of the copy bandwidth that is reached. Each cell holds two ratios: of the best wall
times, and of the time on the cores of all threads together, which other work on the machine disturbs less.
`fixtures`: the kernels of crates/passnet-kernel/tests/kernels against Triton's interpreter (needs NumPy before 2.5).
`first`: from pass text to the first result.
"""

import argparse
import json
import math
import os
import subprocess
import sys
import time
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(REPOSITORY / "python"))
CRATE = REPOSITORY / "crates" / "passnet-kernel"
KEEP = {"MALLOC_MMAP_THRESHOLD_": "1073741824", "MALLOC_TRIM_THRESHOLD_": "17179869184", "MALLOC_TOP_PAD_": "67108864"}


class Server:
    """A process that answers one line of JSON for each line it is given."""

    def __init__(self, command, env=None):
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={**os.environ, **(env or {})})

    def ask(self, *words) -> dict:
        self.process.stdin.write(" ".join(map(str, words)) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"no answer to {words}")
        return json.loads(line)

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def geometric(values) -> float:
    return math.exp(sum(map(math.log, values)) / len(values))


def busy_seconds() -> float:
    """Time that the threads of this process have been on a core."""
    return sum(int(p.read_text().split()[0]) for p in Path("/proc/self/task").glob("*/schedstat")) * 1e-9


def torch_worker(paths, threads):
    """The other side of `fused`: answers `eager|inductor INDEX REPEATS`."""
    import torch

    from passnet.kernels.triton_fixtures import header, load

    torch.set_num_threads(threads)
    cases = {}
    for line in sys.stdin:
        kind, index, repeats = line.split()
        index, repeats = int(index), int(repeats)
        # One case at a time is kept, or the inputs of all would fill the memory.
        if index not in cases:
            _, inputs, _, _ = header(Path(paths[index]), "cpu")
            reference = load(Path(paths[index])).reference
            cases = {index: (inputs, reference, torch.compile(reference))}
        inputs, eager, compiled = cases[index]
        function = compiled if kind == "inductor" else eager
        wall = math.inf
        with torch.no_grad():
            function(*inputs)
            before = busy_seconds()
            for _ in range(repeats):
                started = time.perf_counter()
                function(*inputs)
                wall = min(wall, time.perf_counter() - started)
            busy = (busy_seconds() - before) / repeats
        print(json.dumps({"min": wall, "busy": busy}), flush=True)
    return 0


def fused(args) -> int:
    paths = [str(p) for p in sorted((CRATE / "benches" / "kernels").glob("*.py")) if not args.only or p.stem in args.only]
    worker = [sys.executable, __file__, "worker", "--threads", str(args.threads), "--files", *paths]
    ours = Server([args.ours, "--threads", str(args.threads), *paths])
    # Threads of the other side sleep while they wait, or their waiting would count as work.
    passive = {"OMP_WAIT_POLICY": "passive"}
    plain, kept = Server(worker, passive), Server(worker, {**passive, **KEEP})
    sides = {
        "ours": (ours, "run"), "copy": (ours, "copy"), "eager": (plain, "eager"), "inductor": (plain, "inductor"),
        "eager kept": (kept, "eager"), "inductor kept": (kept, "inductor"),
    }
    others = list(sides)[1:]
    print(f"{'kernel':22}{'ours us':>9}" + "".join(f"{s:>20}" for s in others) + "   (times ours: wall, busy)")
    records = []
    for index, path in enumerate(paths):
        best = {side: {"min": math.inf, "busy": math.inf} for side in sides}
        for _ in range(args.rounds):
            for side, (server, command) in sides.items():
                answer = server.ask(command, index, args.repeats)
                best[side] = {key: min(value, answer[key]) for key, value in best[side].items()}
        ratios = {s: {key: best[s][key] / best["ours"][key] for key in ("min", "busy")} for s in others}
        records.append({"kernel": Path(path).stem, "seconds": best["ours"], "ratios": ratios})
        cells = "".join(f"{ratios[s]['min']:12.2f}{ratios[s]['busy']:8.2f}" for s in others)
        print(f"{Path(path).stem:22}{best['ours']['min'] * 1e6:9.0f}{cells}", flush=True)
    means = {s: {key: geometric([r["ratios"][s][key] for r in records]) for key in ("min", "busy")} for s in others}
    print(f"{'geometric mean':31}" + "".join(f"{means[s]['min']:12.2f}{means[s]['busy']:8.2f}" for s in others))
    for server in (ours, plain, kept):
        server.close()
    if args.json:
        args.json.write_text(json.dumps({"kernels": records, "geometric_means": means}, indent=1) + "\n")
    return 0


def interpreter(args) -> int:
    os.environ["TRITON_INTERPRET"] = "1"
    from passnet.kernels.triton_fixtures import fixtures, run

    paths = fixtures(CRATE / "tests" / "kernels")
    ours = Server([args.ours, "--threads", str(args.threads), *map(str, paths)])
    ratios = []
    for index, path in enumerate(paths):
        seconds = min(run(path, "cpu")[3] for _ in range(args.rounds))
        mine = min(ours.ask("run", index, 20 * args.repeats)["min"] for _ in range(args.rounds))
        ratios.append(seconds / mine)
        print(f"{path.stem:28}{seconds * 1e3:10.2f} ms{mine * 1e6:10.1f} us{seconds / mine:10.0f}x", flush=True)
    ours.close()
    print(f"geometric mean over {len(ratios)} kernels: {geometric(ratios):.0f}x Triton's interpreter, least {min(ratios):.0f}x")
    return 0


def first(args) -> int:
    paths = sorted((CRATE / "tests" / "kernels").glob("*.py"))
    ours = Server([args.ours, "--threads", str(args.threads), *map(str, paths)])
    times = sorted(min(ours.ask("first", index)["min"] for _ in range(args.rounds)) for index in range(len(paths)))
    ours.close()
    print(f"text to first result over {len(times)} passes: median {times[len(times) // 2] * 1e3:.2f} ms, slowest {times[-1] * 1e3:.2f} ms")
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("mode", choices=["fused", "fixtures", "first", "worker"])
    parser.add_argument("--ours", default=str(REPOSITORY / "target/release/examples/time_kernels"))
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--only", nargs="*", help="names of kernels for `fused`")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--files", nargs="*", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.mode == "worker":
        return torch_worker(args.files, args.threads)
    return {"fused": fused, "fixtures": interpreter, "first": first}[args.mode](args)


if __name__ == "__main__":
    sys.exit(main())
