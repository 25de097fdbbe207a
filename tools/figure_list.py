"""What figures there are: for each the claim, the command, and how its output becomes a table. `tools/figures` uses it.

A figure measured here runs its command; one of a GPU takes files that were brought back. Either way `measure` gives the tables,
the lines, where they come from, and the few values that the README repeats.
"""

from __future__ import annotations

import json
import math
import random
import re
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

TOOLS = Path(__file__).resolve().parent
ROOT = TOOLS.parent


class Unmeasured(Exception):
    """Why there is no result."""


@dataclass(frozen=True)
class Place:
    """Where a figure is measured."""

    passnet: str
    python: str
    corpus: Path | None
    files: list[Path]

    def graphs(self, name: str) -> str:
        if self.corpus is None or not (self.corpus / name).exists():
            raise Unmeasured(f"needs --corpus DIR with {name}")
        return str(self.corpus / name)

    def run(self, *arguments: str, codes: tuple[int, ...] = (0, 1)) -> str:
        """What a command prints, from the root of the project."""
        done = subprocess.run(arguments, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        if done.returncode not in codes:
            raise Unmeasured(f"exit code {done.returncode}: {done.stderr.strip()[-400:]}")
        return done.stdout

    def here(self, with_torch: bool = False) -> dict:
        """This machine, as the program sees it."""
        task = next((ROOT / "bench/tasks").iterdir())
        graph = next((task / "graphs").iterdir()).name
        out = self.run(self.passnet, "bench", str(task), "--passes", "bench/passes", "--filter", graph, "--quick", "--json")
        known = identity(json.loads(out)["identity"], time.time())
        if with_torch:
            code = "import torch; print(torch.__version__)"
            known["torch"] = self.run(self.python, "-c", code, codes=(0,)).strip()
        return known


def identity(found: dict, seconds: float) -> dict:
    """Of a run's identity what a reader wants to know."""
    device = found["device"]["name"]
    if found["device"]["kind"] == "cpu":
        device = f"{found.get('cores', '?')} cores of {device}"
    build = found["build"]
    known = {"device": device, "build": f"{build['version']} {(build.get('commit') or 'unknown')[:10]}"}
    for name in ("torch", "triton"):
        if found.get(name):
            known[name] = found[name]
    return {**known, "date": time.strftime("%Y-%m-%d", time.gmtime(seconds))}


def measured(where: dict, *tables: dict, lines: str = "", **values: str) -> dict:
    text = [line.rstrip() for line in lines.strip("\n").splitlines()]
    return {"identity": where, "tables": list(tables), "lines": text, "values": values}


def table(columns: list[str], rows: list[list[str]]) -> dict:
    return {"columns": columns, "rows": rows}


def mean(values: list[float]) -> float:
    return math.exp(sum(map(math.log, values)) / len(values))


def lines_of(text: str) -> list[dict]:
    return [json.loads(line) for line in text.splitlines() if line.startswith("{")]


def refusals(checked: list[dict]) -> dict[str, list[str]]:
    """The graphs that were refused, by what was said first; numbers in it are those of one graph."""
    found: dict[str, list[str]] = {}
    for line in checked:
        if not line["ok"]:
            error = line["errors"][0]
            reason = re.sub(r"\d+", "N", error["message"])
            found.setdefault(f"`{Path(error['file']).name}`: {reason}", []).append(f"`{line['path']}`")
    return found


def corpus(place: Place) -> dict:
    """Public graphs: read, checked, told apart."""
    archive = place.graphs("graphnet-public.tar.zst")
    checked = lines_of(place.run(place.passnet, "graph", "check", "--json", archive))
    hashed = lines_of(place.run(place.passnet, "graph", "hash", "--json", archive))
    good = sum(line["ok"] for line in checked)
    counts = [str(len({line[level] for line in hashed})) for level in ("structure", "literals", "full")]
    rows = [["graphs that parse, verify and check", f"{good} of {len(checked)}"]]
    rows += [[f"distinct by {level}", count] for level, count in zip(("structure", "literals", "all"), counts, strict=True)]
    rows.append(["operations", f"{sum(line['ops'] for line in hashed):,}"])
    rows += [[f"refused: {reason}", f"{len(paths)}: {', '.join(paths)}"] for reason, paths in refusals(checked).items()]
    return measured(place.here(), table(["what", "figure"], rows), good=str(good), all=str(len(checked)))


def dataset(place: Place) -> dict:
    """The whole pipeline on the public graphs."""
    archive = place.graphs("graphnet-public.tar.zst")
    with tempfile.TemporaryDirectory() as folder:
        store = str(Path(folder) / "corpus.pnds")
        began = time.monotonic()
        place.run(place.passnet, "dataset", "build", "--from", archive, "--store", store, codes=(0,))
        seconds = time.monotonic() - began
        stats = place.run(place.passnet, "dataset", "stats", store, codes=(0,))
        size = Path(store).stat().st_size / 1e6
    return measured(place.here(), lines=f"{stats}\n{seconds:.0f} s, {size:.0f} MB")


def bundled(place: Place) -> dict:
    """The bundled tasks with the passes written for them."""
    found = json.loads(place.run(place.passnet, "bench", "bench/tasks", "--passes", "bench/passes", "--json"))
    summary = found["summary"]
    rows = [[str(summary["graphs"]), str(summary["correct"]), f"{found['as']:.3f}"]]
    values = {"graphs": str(summary["graphs"]), "correct": str(summary["correct"]), "score": f"{found['as']:.2f}"}
    return measured(identity(found["identity"], time.time()), table(["graphs", "correct", "AS"], rows), **values)


def red_team(place: Place) -> dict:
    """Every attack of the suite, with the integrity rules and without, beside an honest pass each."""
    found = json.loads(place.run(place.passnet, "bench", "--self-check", "--json"))
    cases = found["cases"]
    # An attack is stopped where no graph is credited.
    stopped = {key: [case[key]["credited_from"] is None for case in cases] for key in ("exploit_with_rules", "exploit_without_rules")}
    honest = [case["control"]["correct"] == case["control"]["graphs"] for case in cases]
    layers = Counter(case["exploit_without_rules"]["layer"] or "none" for case in cases)
    rows = [
        ["attacks stopped, with the rules", f"{sum(stopped['exploit_with_rules'])} of {len(cases)}"],
        ["attacks stopped, without them", f"{sum(stopped['exploit_without_rules'])} of {len(cases)}"],
        ["honest controls that are right", f"{sum(honest)} of {len(cases)}"],
        ["stopped without the rules by", ", ".join(f"{layer} {count}" for layer, count in layers.most_common())],
    ]
    values = {"stopped": rows[0][1], "without": rows[1][1], "honest": rows[2][1]}
    return measured(identity(found["identity"], time.time()), table(["what", "figure"], rows), **values)


def reading(place: Place) -> dict:
    """Reading graphs against CPython."""
    archive = place.graphs("graphnet-public.tar.zst")
    with tempfile.TemporaryDirectory() as folder:
        place.run("tar", "-I", "zstd", "-xf", archive, "-C", folder, codes=(0,))
        text = place.run(place.python, "tools/bench_read.py", "--passnet", place.passnet, "--rounds", "1", folder, codes=(0,))
    return measured(place.here(), lines=text)


def solver_on_cpu(place: Place) -> dict:
    """The solver on tasks of the benchmark set that are drawn anew each day."""
    seed = time.strftime("%Y%m%d", time.gmtime())
    with tempfile.TemporaryDirectory() as folder:
        tasks = Path(folder) / "tasks"
        export = ["dataset", "export", "bench/set/evaluation.pnds", "--kind", "fusible", "--out", str(tasks)]
        place.run(place.passnet, *export, codes=(0,))
        listed = sorted((tasks / "sample_lists/fusible_eval.txt").read_text(encoding="utf-8").split())
        drawn = [str(tasks / task) for task in random.Random(seed).sample(listed, 60)]
        out = str(Path(folder) / "solved")
        lines = lines_of(place.run(place.passnet, "solve", *drawn, "--graphs", "2", "--quick", "--out", out, "--json"))
    found = lines[-1]
    speedups = [graph["speedup"] for graph in found["graphs"] if graph.get("verdict") == "correct" and graph.get("speedup")]
    rows = [
        [
            str(len(drawn)), str(found["summary"]["graphs"]), str(found["summary"]["correct"]), f"{found['as']:.3f}",
            f"{mean(speedups):.2f}", str(sum(speedup < 0.95 for speedup in speedups)),
        ]
    ]  # fmt: skip
    columns = ["tasks", "graphs", "correct", "AS", "speed-up", "below 0.95"]
    return measured(identity(found["identity"], time.time()), table(columns, rows), score=f"{found['as']:.2f}")


def engine_speed(place: Place) -> dict:
    """The native engine against PyTorch eager."""
    archive = place.graphs("graphnet-cover.tar.zst")
    with tempfile.TemporaryDirectory() as folder:
        store, pieces = str(Path(folder) / "cover.pnds"), Path(folder) / "pieces"
        build = ["dataset", "build", "--from", archive, "--store", store, "--kind", "fusible", "--no-shapes"]
        place.run(place.passnet, *build, codes=(0,))
        place.run(place.passnet, "dataset", "export", store, "--kind", "fusible", "--out", str(pieces), codes=(0,))
        options = ["--threads", "2", "--limit", "100", "--seconds", "0.03", "--max-elements", "1000000"]
        command = [place.python, "tools/bench_engine.py", "--passnet", place.passnet, *options, str(pieces / "graphs")]
        text = place.run(*command, codes=(0,))
    # The slowest are named by their places in a folder that is gone.
    kept = text.split("the slowest:")[0]
    return measured(place.here(with_torch=True), lines=kept)


def kernels_on_cpu(place: Place) -> dict:
    """Fused kernels on the CPU against PyTorch eager and TorchInductor."""
    text = place.run(place.python, "tools/bench_kernels.py", "fused", "--rounds", "2", "--repeats", "2", codes=(0,))
    return measured(place.here(with_torch=True), lines=text)


def run_identity(run: Path) -> dict:
    start = json.loads((run / "events.jsonl").open(encoding="utf-8").readline())
    return identity(start["identity"], start["time"])


def markdown(text: str) -> list[dict]:
    """The tables that a command printed."""
    tables: list[dict] = []
    is_inside = False
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if not line.startswith("|"):
            is_inside = False
        elif not is_inside:
            tables.append(table(cells, []))
            is_inside = True
        elif not set(line) <= {"|", "-"}:
            tables[-1]["rows"].append(cells)
    return tables


def solver_on_gpu(place: Place) -> dict:
    """The runs of the solver's passes and of TorchInductor on the same graphs."""
    passes, inductor = place.files
    options = ["--passnet", place.passnet, "--classes", str(passes), str(inductor)]
    tables = markdown(place.run(place.python, "tools/gpu_table.py", *options, codes=(0,)))
    ours, theirs = (row[3] for row in tables[0]["rows"][:2])
    times = {row[0]: row[1:] for row in tables[1]["rows"]}
    device = float(times["device, µs"][0]) / float(times["device, µs"][1])
    values = {"ours": ours, "theirs": theirs, "device": f"{device:.2f}", "graphs": tables[0]["rows"][0][1]}
    return measured(run_identity(passes), *tables, **values)


def models_identity(path: Path, line: dict) -> dict:
    """Where a line of `tools/model_table.py` was measured; older ones name no build."""
    if (line.get("identity") or {}).get("build"):
        return identity(line["identity"], path.stat().st_mtime)
    date = time.strftime("%Y-%m-%d", time.gmtime(path.stat().st_mtime))
    return {"device": line["device"], "build": "not recorded", "torch": line["torch"], "date": date}


FASTEST, FREEZING = "passnet-fastest", "passnet-fastest-freezing"


def model_rows(path: Path, ways: tuple[str, ...]) -> list[tuple[dict, dict, list[str]]]:
    """Each model's last line, its ways by name, and its row: the times, what `fastest` chose, whether all outputs are right."""
    lines = {(line["name"], line["batch"]): line for line in lines_of(path.read_text(encoding="utf-8"))}
    rows = []
    for (name, batch), line in sorted(lines.items(), key=lambda item: (item[0][1], item[0][0])):
        times = {timed["way"]: timed for timed in line["ways"]}
        cells = [f"{times[way]['ms']:.2f}" if times.get(way, {}).get("ms") else "-" for way in ways]
        right = all(timed["right"] for timed in line["ways"] if timed["ms"])
        ours = [times[way] for way in (FASTEST, FREEZING) if times.get(way, {}).get("ms")]
        chosen = "; ".join(", ".join(timed.get("chosen") or ["-"]) for timed in ours) or "-"
        rows.append((line, times, [name, str(batch), *cells, chosen, "yes" if right else "NO"]))
    if not rows:
        raise Unmeasured(f"{path} has no lines of tools/model_table.py")
    return rows


def ratios(
    rows: list[tuple[dict, dict, list[str]]], against: str, batch: int | None = None, clock: str = "ms", ours: str = FASTEST
) -> list[float]:
    """How much faster `fastest` is than another way, for the models that have both."""
    return [
        times[against][clock] / times[ours][clock]
        for line, times, _ in rows
        if batch in (None, line["batch"]) and all(times.get(way, {}).get(clock) for way in (against, ours))
    ]


# What `fastest` costs, as parts of what another way costs; tables without it have no such column.
COSTS = (
    ("compiling / Inductor", "compile_seconds", "inductor"),
    ("compiling / reduce-overhead", "compile_seconds", "inductor-reduce-overhead"),
    ("memory / eager", "memory", "eager"),
)
OPTIONAL = ("passes in a CUDA graph",)


def share(times: dict, what: str, against: str) -> float | None:
    """What `fastest` costs of what another way costs. A way that was chosen in the same process compiled others, too."""
    ours, theirs = times.get("passnet-fastest", {}), times.get(against, {})
    if what == "compile_seconds" and not ours.get("known"):
        return None
    return ours[what] / theirs[what] if ours.get("ms") and theirs.get("ms") and ours.get(what) and theirs.get(what) else None


def models_on_gpu(place: Place) -> dict:
    """A table of `tools/model_table.py`."""
    ways = ("eager", "eager-cudagraph", "inductor", "inductor-reduce-overhead", "passnet-cudagraph", "passnet-fastest")
    found = model_rows(place.files[0], ways)
    rows = [row for _, _, row in found]
    columns = ["model", "batch", "eager", "in a CUDA graph", "Inductor", "reduce-overhead", "passes in a CUDA graph", "fastest", "chosen", "right"]
    costs = [(title, what, against) for title, what, against in COSTS if any(share(times, what, against) for _, times, _ in found)]
    for (_, times, _), row in zip(found, rows):
        row += [f"{value:.2f}" if (value := share(times, what, against)) else "-" for _, what, against in costs]
    means = {}
    for batch in (1, 16):
        values = ratios(found, "inductor-reduce-overhead", batch)
        means[batch] = f"{mean(values):.2f}" if values else "-"
        if values:
            row = [f"**mean of {len(values)}**", str(batch), *["-"] * 5, f"**{means[batch]}x** reduce-overhead", "-", "-"]
            for _, what, against in costs:
                shares = [value for line, times, _ in found if line["batch"] == batch and (value := share(times, what, against))]
                row.append(f"**{mean(shares):.2f}** of {len(shares)}" if shares else "-")
            rows.append(row)
    columns += [title for title, _, _ in costs]
    # A way that no model has is no column.
    empty = [at for at, title in enumerate(columns) if title in OPTIONAL and all(row[at] == "-" for row in rows)]
    for cells in (columns, *rows):
        for at in reversed(empty):
            del cells[at]
    return measured(models_identity(place.files[0], found[0][0]), table(columns, rows), one=means[1], sixteen=means[16])


def models_on_cpu(place: Place) -> dict:
    """The same without a GPU; `fastest` also where the weights may be constants."""
    others = ("eager", "inductor", "inductor-freezing")
    found = model_rows(place.files[0], (*others, FASTEST, FREEZING))
    rows, values = [row for _, _, row in found], {"models": str(len(found))}
    for ours, name in ((FASTEST, "fastest"), (FREEZING, "fastest, freezing")):
        for clock, said in (("ms", ""), ("processor_ms", ", by the processor's time")):
            times = {way: faster for way in others if (faster := ratios(found, way, clock=clock, ours=ours))}
            if not times:
                continue
            over = [f"**{mean(times[way]):.2f}x**" if way in times else "-" for way in others]
            rows.append([f"**{name} over these**, {len(found)} models{said}", "-", *over, *["-"] * 4])
            values |= {f"{ours}_{way}_{clock}": f"{mean(faster):.2f}" for way, faster in times.items()}
    columns = ["model", "batch", "eager", "Inductor", "Inductor, freezing", "fastest", "fastest, freezing", "chosen", "right"]
    return measured(models_identity(place.files[0], found[0][0]), table(columns, rows), **values)


def autotune(place: Place) -> dict:
    text = place.run(place.python, "tools/check_autotune.py", "--tell", str(place.files[0]))
    return measured(run_identity(place.files[0]), lines=text)


def learning(place: Place) -> dict:
    """The report of `passnet learn`."""
    report = json.loads(place.files[0].read_text(encoding="utf-8"))
    rows = []
    for name, steps in (("held-out tasks", report["stages"]), ("tasks like those of the training", report["also"])):
        for step in steps:
            low, high = step["interval"]
            shares = [f"{100 * step[share]:.0f} %" for share in ("matched", "right", "faster")]
            tasks = [str(step["tasks"]), str(len(step.get("set_aside", [])))]
            rows.append([name, step["name"], *tasks, f"{step['score']:.3f} ({low:.3f} to {high:.3f})", *shares])
    date = place.files[0].stat().st_mtime
    columns = ["set", "step", "tasks", "set aside: eager fails", "AS (95 %)", "matched", "right", "faster"]
    greedy = [step for step in report["stages"] if not step["name"].startswith("best-of")]
    before, after = greedy[0], greedy[-1]
    values = {"before": f"{before['score']:.3f}", "after": f"{after['score']:.3f}", "tasks": str(after["tasks"])}
    return measured(identity(report["identity"], date), table(columns, rows), **values)


@dataclass(frozen=True)
class Figure:
    """What is claimed, and how it is measured: here, with what `options` name, or from `files` that were brought back."""

    name: str
    section: str
    claim: str
    command: str
    measure: Callable[[Place], dict]
    files: tuple[str, ...] = ()
    options: tuple[str, ...] = ()

    def made_by(self) -> str:
        """The call of tools/figures that measures it again."""
        return " ".join(["tools/figures", "take" if self.files else "measure", self.name, *self.files, *self.options])


@dataclass(frozen=True)
class Headline:
    """A row of the README, by language."""

    claim: dict[str, str]
    text: dict[str, str]


CORPUS, PYTHON = ("--corpus DIR",), ("--python PYTHON",)

FIGURES = [
    Figure("bundled", "The judge", "The bundled passes are right and faster than eager", "passnet bench bench/tasks --passes bench/passes", bundled),
    Figure("red-team", "The judge", "Attacks are stopped, honest passes are not", "passnet bench --self-check", red_team),
    Figure("solver-h200", "The solver", "The solver's passes, untuned, against TorchInductor: two graphs of each fusible task of the benchmark set (the one with the largest inputs and one drawn), measured before anybody had looked at them, with a development build", "tools/inductor_profile.py SET profile/ --kinds fusible --graphs 2 --modes default --parts 1 --jobs 14 --seconds 0.05, passnet solve and bench of profile/tasks/samples, then tools/gpu_table.py --classes RUN_OF_PASSES RUN_OF_INDUCTOR", solver_on_gpu, files=("RUN_OF_PASSES", "RUN_OF_INDUCTOR")),
    Figure("solver-cpu", "The solver", "The solver on the CPU, 60 tasks of the benchmark set drawn at random by the date", "passnet solve TASKS --graphs 2 --quick --out solved", solver_on_cpu),
    Figure("models-h200", "Passes at work", "Whole models with `torch.compile(model, backend=\"passnet\")`, milliseconds of a call, bfloat16", "tools/model_table.py --library LIBRARY", models_on_gpu, files=("TABLE",)),
    Figure("models-cpu", "Passes at work", "Whole models on a CPU, two threads, milliseconds of a call, float32", "tools/model_table.py --device cpu --dtype float32 --batch 1 --ways eager,inductor,inductor-freezing,passnet-fastest,passnet-fastest-freezing --against inductor --library LIBRARY", models_on_cpu, files=("TABLE",)),
    Figure("autotune-h200", "Passes at work", "`@triton.autotune` chooses as a search by hand does", "tools/check_autotune.py bench/tasks bench/passes --kernels 10 --graphs 2 --engine torch --device cuda --quick --seconds 0.1", autotune, files=("RUN",)),
    Figure("learning", "Learning", "A small model before and after it learned from the solver", "passnet learn (the report has the whole command)", learning, files=("REPORT",)),
    Figure("corpus", "Graphs and data", "Public graphs are read, checked and told apart", "passnet graph check | hash graphnet-public.tar.zst", corpus, options=CORPUS),
    Figure("dataset", "Graphs and data", "The whole pipeline on 2,019 public models", "passnet dataset build --from graphnet-public.tar.zst --store corpus.pnds", dataset, options=CORPUS),
    Figure("reading", "Speed of the parts", "Reading graphs against CPython", "tools/bench_read.py GRAPHS", reading, options=CORPUS + PYTHON),
    Figure("engine", "Speed of the parts", "The native engine against PyTorch eager, fusible pieces of the cover set", "tools/bench_engine.py --threads 2 --limit 100 --seconds 0.03 --max-elements 1000000 PIECES", engine_speed, options=CORPUS + PYTHON),
    Figure("kernels", "Speed of the parts", "Fused kernels on the CPU against PyTorch eager and TorchInductor", "tools/bench_kernels.py fused --rounds 2 --repeats 2", kernels_on_cpu, options=PYTHON),
]  # fmt: skip

HEADLINE = {
    "red-team": Headline(
        {"en": "attacks stopped, with the rules and without; honest controls right", "zh": "被阻止的攻击（有规则、无规则）；判为正确的诚实对照"},
        {"en": "{stopped}, {without}; {honest}", "zh": "{stopped}、{without}；{honest}"},
    ),
    "bundled": Headline(
        {"en": "bundled tasks with their passes, native engine", "zh": "自带任务及其 pass，原生引擎"},
        {"en": "{correct} of {graphs} graphs correct, AS {score}", "zh": "{graphs} 个图中 {correct} 个正确，AS {score}"},
    ),
    "solver-h200": Headline(
        {"en": "the solver against TorchInductor (default mode), fresh tasks", "zh": "求解器与 TorchInductor（默认模式），未见过的任务"},
        {"en": "AS {ours} against {theirs}; its kernels take {device} times as long as TorchInductor's on the device", "zh": "AS {ours} 对 {theirs}；kernel 在设备上的时间是 TorchInductor 的 {device} 倍"},
    ),
    "models-h200": Headline(
        {"en": "whole models, `rest=\"fastest\"` (mostly TorchInductor's code in our CUDA graph) against reduce-overhead, batch 1 and 16", "zh": "完整模型，`rest=\"fastest\"`（多为我们的 CUDA graph 中 TorchInductor 的代码）对 reduce-overhead，批量 1 和 16"},
        {"en": "{one}x and {sixteen}x", "zh": "{one} 倍和 {sixteen} 倍"},
    ),
    "learning": Headline(
        {"en": "a model of 1.5 billion weights before and after learning, held-out tasks", "zh": "15 亿参数模型学习前后，保留任务"},
        {"en": "AS {before} and {after} on {tasks} tasks", "zh": "{tasks} 个任务上 AS {before} 和 {after}"},
    ),
}  # fmt: skip
