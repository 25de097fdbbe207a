"""Judge the demonstration passes by PyTorch and Triton alone: `python tools/check_demo_passes.py [TASK...]`.

torch.fx matches each pass's pattern in every graph of its task and rewrites it; the rewritten graph runs with the
pass's own Triton kernels (compiled where there is a GPU, else in Triton's interpreter) and its outputs are compared
with the untouched graph in eager PyTorch. Nothing of this project takes part but the inputs' replay and the
tolerances. Only our own passes are imported here; nothing else ever is.

Without a GPU bfloat16 graphs are left out: Triton's interpreter truncates where the compiler rounds.
"""

import importlib.util
import os
import sys
import time
from pathlib import Path

import torch
from torch.fx import GraphModule, symbolic_trace
from torch.fx.subgraph_rewriter import replace_pattern

CUDA = torch.cuda.is_available()
DEVICE = "cuda" if CUDA else "cpu"
if not CUDA:
    os.environ["TRITON_INTERPRET"] = "1"

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "python"))

from passnet.graphs.replay import replay_inputs  # noqa: E402
from passnet.parity.yardstick import worst_excess  # noqa: E402

# The level of the tolerance ladder at which a graph is called correct.
RUNG = -5


def load(path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


def graph_of(path):
    scope = {}
    exec(compile(path.read_text(), str(path), "exec"), scope)
    return symbolic_trace(scope["GraphModule"]())


def rewrite(graph: GraphModule, module) -> int:
    """The pass as torch.fx applies it: one call of the wrapper in place of the pattern."""
    pattern = symbolic_trace(module.pattern)
    outputs = pattern.graph.output_node().args[0]

    replacement = torch.fx.Graph()
    names = [node.name for node in pattern.graph.find_nodes(op="placeholder")]
    places = [torch.fx.Proxy(replacement.placeholder(name)) for name in names]
    arguments = tuple(getattr(a, "node", a) for a in module.replacement_args(*places))
    call = replacement.call_function(module.replacement_func(), arguments)
    if isinstance(outputs, tuple):
        items = [replacement.call_function(lambda x, i: x[i], (call, i)) for i in range(len(outputs))]
        replacement.output(tuple(items))
    else:
        replacement.output(call)
    return len(replace_pattern(graph, pattern, GraphModule({}, replacement)))


def worst(expected, got):
    """The largest error in units of what the step allows: right is at most one."""
    if expected.shape != got.shape or expected.dtype != got.dtype:
        return float("inf")
    return worst_excess(expected, got, RUNG)


def microseconds(function, inputs):
    for _ in range(25):
        function(**inputs)
    torch.cuda.synchronize()
    started = time.perf_counter()
    for _ in range(100):
        function(**inputs)
    torch.cuda.synchronize()
    return (time.perf_counter() - started) * 1e4


def judge(folder, module):
    inputs = {name: value.to(DEVICE) for name, value in replay_inputs(folder).items()}
    plain = graph_of(folder / "model.py")
    changed = graph_of(folder / "model.py")
    matches = rewrite(changed, module)
    expected = plain(**{k: v.clone() for k, v in inputs.items()})
    got = changed(**{k: v.clone() for k, v in inputs.items()})
    errors = [worst(a, b) for a, b in zip(expected, got, strict=True)]
    speed = ""
    if CUDA:
        before, after = microseconds(plain, inputs), microseconds(changed, inputs)
        speed = f", eager {before:.0f} us, pass {after:.0f} us"
    return matches == 1 and max(errors) <= 1.0, f"{matches} match, error {max(errors):.3g}{speed}"


def main():
    names = sys.argv[1:] or sorted(p.name for p in (ROOT / "bench/tasks").iterdir() if p.is_dir())
    bad = 0
    for name in names:
        module = load(ROOT / "bench/passes" / name / f"{name}.py")
        for line in (ROOT / "bench/tasks" / name / "graph_list.txt").read_text().split():
            if not CUDA and "bfloat16" in line:
                continue
            try:
                right, evidence = judge(ROOT / "bench/tasks" / name / line, module)
            except Exception as error:  # one broken graph must not hide the others
                right, evidence = False, f"{type(error).__name__}: {error}"
            bad += not right
            print(f"{'ok   ' if right else 'WRONG'} {name}/{line}: {evidence}", flush=True)
    print(f"{bad} wrong")
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
