"""`python -m passnet.extract`: capture one model, or a catalogue."""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
import time
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from . import catalogue
from .errors import CaptureError
from .job import run as run_job
from .model import Entry
from .pool import Job, Limits, Plan, Pool
from .results import read, summary


def main(arguments: list[str] | None = None, job: Job = run_job) -> int:
    options = _parser().parse_args(arguments)
    if options.serve:
        return _serve(options, job)
    try:
        chosen = _chosen(options)
    except (CaptureError, OSError, ValueError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    if options.list_only:
        catalogue.write_list(options.out, chosen)
        print(f"{len(chosen)} models listed in {options.out}", file=sys.stderr)
        return 0
    return _extract(options, chosen, job)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m passnet.extract", description=__doc__)
    add = parser.add_argument
    add("models", nargs="*", metavar="FILE.py:FACTORY", help="factories of modules with inputs")
    add("--catalogue", default="", help=f"comma-separated: {', '.join(catalogue.SOURCES)}, or all")
    add("--configs", metavar="DIR|hub|hub:N", help="published configurations: a folder with config.json files, or the hub")
    add("--list", type=Path, help="a list of models written by --list-only")
    add("--serve", action="store_true", help="capture models as they are named on stdin, one JSON object a line")
    add("--list-only", action="store_true", help="write the list of models to --out and capture nothing")
    add("--only", default="*", help="models whose FAMILY/NAME matches, such as 'timm/resnet*'")
    add("--out", type=Path, required=True, help="the folder for samples/ and results.jsonl")
    add("--jobs", type=int, default=1, help="models at a time")
    add("--time-limit", type=float, default=240.0, help="seconds for one model")
    add("--memory-limit-mb", type=int, default=6_144, help="resident memory of one model")
    add("--seconds", type=float, help="stop after so many seconds; run again to continue")
    add("--retry-failed", action="store_true", help="try models again that failed before")
    add("--dynamic", action="store_true", help="symbolic sizes")
    add("--fullgraph", action="store_true", help="refuse models whose graph breaks")
    add("--pause-file", type=Path, help="begin nothing while this file exists")
    add("--json", action="store_true", help="one JSON line for each model on stdout")
    return parser


def _chosen(options: argparse.Namespace) -> list[Entry]:
    chosen = [
        Entry("own", _name_of(spec), "file", {"factory": spec}) for spec in options.models
    ]
    if options.list is not None:
        chosen += catalogue.read_list(options.list)
    if options.catalogue:
        names = list(catalogue.SOURCES) if options.catalogue == "all" else options.catalogue.split(",")
        chosen += catalogue.entries(names, options.only)
    if options.configs:
        chosen += [entry for entry in catalogue.configurations.entries(options.configs) if fnmatchcase(entry.id, options.only)]
    if not chosen:
        raise CaptureError("bad request", "nothing to capture: name a FILE.py:FACTORY, a --catalogue or --configs")
    return chosen


def _name_of(spec: str) -> str:
    path, _, factory = spec.rpartition(":")
    return f"{Path(path).stem}_{factory}"


def _plan(options: argparse.Namespace, out: Path) -> Plan:
    return Plan(
        out=out,
        jobs=max(options.jobs, 1),
        limits=Limits(seconds=options.time_limit, memory=options.memory_limit_mb << 20),
        seconds=options.seconds,
        retry_failed=options.retry_failed,
        dynamic=options.dynamic,
        fullgraph=options.fullgraph,
        pause_file=options.pause_file,
    )


def _serve(options: argparse.Namespace, job: Job) -> int:
    """One model after another, each into a folder of its own, all from one warm process."""
    import torch

    warm(set())
    print(json.dumps({"torch": torch.__version__}), flush=True)
    for line in sys.stdin:
        asked = json.loads(line)
        entry = Entry(**asked["entry"])
        pool = Pool(_plan(options, Path(asked["out"])), catalogue.build, job=job)
        pool.run([entry])
        print(json.dumps(pool.results.by_id[entry.id], sort_keys=True), flush=True)
    return 0


def _extract(options: argparse.Namespace, chosen: list[Entry], job: Job) -> int:
    plan = _plan(options, options.out)
    warm({entry.source for entry in chosen})
    start = time.monotonic()

    def report(record: dict[str, Any], done: int, total: int) -> None:
        if options.json:
            print(json.dumps(record, sort_keys=True), flush=True)
        left = (time.monotonic() - start) / done * (total - done)
        what = record.get("kind") or f"{record.get('graphs')} graphs"
        print(f"{done}/{total} {record['id']}: {what}, {left / 60:.0f} min left", file=sys.stderr, flush=True)

    Pool(plan, catalogue.build, report, job).run(chosen)
    wanted = {entry.id for entry in chosen}
    records = {name: r for name, r in read(options.out / "results.jsonl").items() if name in wanted}
    found = summary(records)
    print(json.dumps({"summary": found}, sort_keys=True), flush=True)
    return 0 if found["captured"] == len(chosen) else 1


def warm(sources: set[str]) -> None:
    """Loads what every model needs once, so that a fork per model is cheap."""
    import torch

    from .capture import capture

    torch.set_num_threads(1)
    capture(torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.ReLU()), (torch.ones(1, 2),))
    transformers = "transformers.modeling_utils"
    packages = dict.fromkeys(("transformers", "transformers_forms", "configuration"), transformers)
    for source in (*catalogue.SOURCES, catalogue.configurations.SOURCE):
        package = packages.get(source, source)
        if source in sources:
            # A package that is missing, or was built for another PyTorch: every model of it will say so.
            with contextlib.suppress(ImportError, RuntimeError, OSError):
                __import__(package)


if __name__ == "__main__":
    sys.exit(main())
