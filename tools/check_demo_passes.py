"""Judge the demonstration passes by PyTorch and Triton: `python tools/check_demo_passes.py PASSNET [TASK...]`.

Every graph of `bench/tasks` is rewritten by its pass (`passnet pass apply`), the rewritten graph runs with the
pass's own Triton kernels (in Triton's interpreter where there is no GPU), and its outputs are compared with the
untouched graph in eager PyTorch. Only our own passes are imported here; nothing else ever is.
"""

import importlib.util
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace

if "TRITON_INTERPRET" not in os.environ:
    os.environ["TRITON_INTERPRET"] = "1"

import torch  # noqa: E402

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "python"))

from passnet.replay import replay_inputs  # noqa: E402

DEVICE = "cpu" if os.environ["TRITON_INTERPRET"] == "1" else "cuda"
# rtol and atol of the ladder's step t = -5 for each dtype.
STEP = {
    torch.float32: (1.30e-6, 1e-5),
    torch.float16: (1.00e-3, 1e-5),
    torch.bfloat16: (1.60e-2, 1e-5),
}


def load(path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def forward(text, wrappers):
    for name in vars(wrappers):
        text = re.sub(rf"= {name}\(", f"= wrappers.{name}(", text)
    scope = {"wrappers": wrappers}
    exec(compile(text, "<graph>", "exec"), scope)
    return scope["GraphModule"]().forward


def rewritten(passnet, passes, graph):
    with tempfile.TemporaryDirectory() as out:
        command = [passnet, "pass", "apply", str(passes), "--in", str(graph), "--out", out]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        return next(Path(out).rglob("model.py")).read_text()


def worst(expected, got):
    """The largest error in units of what step -5 allows: at most one is right."""
    if expected.shape != got.shape or expected.dtype != got.dtype:
        return f"{tuple(got.shape)} {got.dtype} for {tuple(expected.shape)} {expected.dtype}"
    if expected.dtype not in STEP:
        return 0.0 if torch.equal(expected, got) else float("inf")
    rtol, atol = STEP[expected.dtype]
    a, b = expected.double(), got.double()
    if not torch.equal(torch.isfinite(a), torch.isfinite(b)):
        return float("inf")
    return ((a - b).abs() / (atol + rtol * b.abs())).nan_to_num(0.0).max().item()


def main():
    passnet, names = sys.argv[1], sys.argv[2:]
    names = names or sorted(p.name for p in (ROOT / "bench/tasks").iterdir() if p.is_dir())
    bad = 0
    for name in names:
        passes = ROOT / "bench/passes" / name
        modules = [load(path) for path in sorted(passes.glob("*.py"))]
        functions = [m.replacement_func() for m in modules if hasattr(m, "replacement_func")]
        wrappers = SimpleNamespace(**{f.__name__: f for f in functions})
        for line in (ROOT / "bench/tasks" / name / "graph_list.txt").read_text().split():
            graph = ROOT / "bench/tasks" / name / line
            inputs = {k: v.to(DEVICE) for k, v in replay_inputs(graph).items()}
            copies = {k: v.clone() for k, v in inputs.items()}
            expected = forward((graph / "model.py").read_text(), SimpleNamespace())(**inputs)
            got = forward(rewritten(passnet, passes, graph), wrappers)(**copies)
            errors = [worst(a, b) for a, b in zip(expected, got, strict=True)]
            wrong = any(isinstance(e, str) or e > 1.0 for e in errors)
            bad += wrong
            shown = ", ".join(e if isinstance(e, str) else f"{e:.3g}" for e in errors)
            print(f"{'WRONG' if wrong else 'ok   '} {name}/{line}: {shown}", flush=True)
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
