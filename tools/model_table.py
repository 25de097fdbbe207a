#!/usr/bin/env python3
"""Times fifteen models with random weights in all ways of `passnet model bench`, and writes a table.

    python tools/model_table.py --out table.jsonl --library LIBRARY [--batch 1,16] [--ways …] [--only bert,vit] [--solve 120]
    python tools/model_table.py --show table.jsonl [--against inductor-reduce-overhead]

Needs PyTorch and transformers (timm where it is there), no network, and the `passnet` program: PASSNET_PROGRAM, or on the path.
Results are added to the file model by model: a run that is cut off loses one.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import math
import os
import subprocess
import sys
from pathlib import Path

TOOLS = Path(__file__).resolve().parent
HAS_TIMM = importlib.util.find_spec("timm") is not None
BASE = "hidden_size=768,num_hidden_layers=12,num_attention_heads=12,intermediate_size=3072"


def own(name: str) -> str:
    return f"{TOOLS / 'model_table_models.py'}:{name}"


def vision(name: str, other: str) -> str:
    """The architecture of timm, or a configuration like it."""
    return f"timm:{name}" if HAS_TIMM else other


MODELS = {
    "resnet50": vision("resnet50", "hf:resnet"),
    "efficientnet_b0": vision(
        "efficientnet_b0", "hf:efficientnet,width_coefficient=1.0,depth_coefficient=1.0,image_size=224,hidden_dim=1280"
    ),
    "convnext_tiny": vision("convnext_tiny", "hf:convnext"),
    "vit_base": vision("vit_base_patch16_224", "hf:vit"),
    "coat_lite_small": vision("coat_lite_small", "hf:pvt_v2"),
    "swin_tiny": vision("swin_tiny_patch4_window7_224", "hf:swin"),
    "bert_base": "hf:bert",
    "deberta_v2": f"hf:deberta-v2,{BASE},vocab_size=32000",
    "mobilevit": vision("mobilevit_s", "hf:mobilevit"),
    "mixture_of_experts": "hf:mixtral,hidden_size=512,num_hidden_layers=4,intermediate_size=1024,num_attention_heads=8,"
    "num_key_value_heads=4,vocab_size=8000,num_local_experts=4",
    "state_space": own("state_space"),
    "unet": own("unet"),
    "detection_neck": own("neck"),
    "audio_encoder": f"hf:wav2vec2,{BASE}",
    "graph_network": own("graph_network"),
}


def measure(given: argparse.Namespace) -> int:
    names = given.only.split(",") if given.only else list(MODELS)
    unknown = [name for name in names if name not in MODELS]
    if unknown:
        print(f"there is no model {unknown[0]!r}; there are {', '.join(MODELS)}", file=sys.stderr)
        return 2
    options = {"library": given.library, "trust": given.trust}
    if given.solve:
        options |= {"solve": True, "solve_seconds": given.solve}
    environment = {**os.environ, "PYTHONPATH": str(TOOLS.parent / "python"), "HF_HUB_OFFLINE": "1"}
    failed = False
    for name in names:
        command = [sys.executable, "-m", "passnet.backend.bench", MODELS[name], "--batch", given.batch, "--json"]
        command += ["--seconds", str(given.seconds), "--options", json.dumps(options)]
        for option in ("ways", "device", "dtype"):
            if getattr(given, option):
                command += [f"--{option}", getattr(given, option)]
        try:
            done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, timeout=given.limit)
            lines = done.stdout.splitlines()
        except subprocess.TimeoutExpired as late:
            lines = (late.stdout or b"").decode().splitlines() if isinstance(late.stdout, bytes) else []
            print(f"{name}: more than {given.limit} seconds", file=sys.stderr)
            failed = True
        with open(given.out, "a") as out:
            for line in lines:
                if line.startswith("{"):
                    result = {**json.loads(line), "name": name}
                    out.write(json.dumps(result) + "\n")
                    print(row(result, given.against), flush=True)
    return 1 if failed else 0


def row(result: dict, against: str) -> str:
    cells = [f"{result['name']:20} {result['batch']:3}"]
    times = {timed["way"]: timed["ms"] for timed in result["ways"] if timed["ms"]}
    for timed in result["ways"]:
        if timed["ms"] is None:
            cells.append(f"{timed['way']}: {(timed['error'] or '')[:60]}")
            continue
        wrong = "" if timed["right"] else " WRONG"
        cells.append(f"{timed['way']} {timed['ms']:.3f}{wrong}")
    best = [(ms, way) for way, ms in times.items() if way.startswith("passnet")]
    if best and against in times:
        ms, way = min(best)
        cells.append(f"best {way} {times[against] / ms:.2f}x {against}")
    return " | ".join(cells)


def show(given: argparse.Namespace) -> int:
    results = [json.loads(line) for line in Path(given.show).read_text().splitlines() if line.strip()]
    last = {(result["name"], result["batch"]): result for result in results}
    ratios: dict[tuple[int, str], list[float]] = {}
    for result in last.values():
        print(row(result, given.against))
        times = {timed["way"]: timed["ms"] for timed in result["ways"] if timed["ms"]}
        ours = [ms for way, ms in times.items() if way.startswith("passnet")]
        for other in ("eager", "inductor", "inductor-reduce-overhead"):
            if ours and other in times:
                ratios.setdefault((result["batch"], other), []).append(times[other] / min(ours))
    for (batch, other), values in sorted(ratios.items()):
        mean = math.exp(sum(map(math.log, values)) / len(values))
        print(f"batch {batch}: the best of passnet is {mean:.2f}x {other}, geometric mean of {len(values)} models")
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", default="model_table.jsonl")
    parser.add_argument("--show", help="the table of a file that is there")
    parser.add_argument("--library", default="library")
    parser.add_argument("--trust", default="judged")
    parser.add_argument("--batch", default="1,16")
    parser.add_argument("--ways", default="eager,eager-cudagraph,inductor,inductor-reduce-overhead,passnet-cudagraph")
    parser.add_argument("--only", default="", help="some of the models")
    parser.add_argument("--solve", type=float, default=0.0, help="let the solver work so many seconds on each graph")
    parser.add_argument("--seconds", type=float, default=1.0, help="seconds of timing for each way")
    parser.add_argument("--limit", type=float, default=600.0, help="seconds for one model at the most")
    parser.add_argument("--against", default="inductor-reduce-overhead")
    parser.add_argument("--device", default="")
    parser.add_argument("--dtype", default="")
    given = parser.parse_args()
    return show(given) if given.show else measure(given)


if __name__ == "__main__":
    sys.exit(main())
