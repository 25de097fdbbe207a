"""Write the demonstration tasks: `python tools/bench_tasks.py [OUT]` fills `bench/tasks` and `bench/redteam/tasks`.

`bench_task_table.py` and `redteam_task_table.py` hold what the tasks are; this file turns each into a sample folder as PassNet lays it out:
`graph_list.txt`, `sample_uids.txt`, an empty `pass_dir`, and one complete graph folder for each variant. The
result depends on the table alone, so running it again changes nothing.
"""

import hashlib
import json
import re
import shutil
import sys
from pathlib import Path

from bench_task_table import TASKS
from redteam_task_table import REDTEAM_TASKS

VALUE = re.compile(r"\b(?:in|w|tmp)_\d+\b")


def model_text(task, dims):
    """The forward function, with the `x = None` lines that mark each value's last use."""
    lines = [line.strip().format(**dims) for line in task["body"].strip().splitlines()]
    last = {name: index for index, line in enumerate(lines) for name in VALUE.findall(line)}
    returned = set(VALUE.findall(lines[-1]))
    out = ["import torch", "", "class GraphModule(torch.nn.Module):", ""]
    out.append(f"    def forward(self, {', '.join(arg['name'] for arg in task['args'])}):")
    for index, line in enumerate(lines):
        out.append(f"        {line}")
        target = line.split(" = ")[0] if " = " in line else ""
        done = [n for n in dict.fromkeys(VALUE.findall(line)) if last[n] == index]
        done = [n for n in done if n not in returned and n != target]
        if done:
            out.append(f"        {' = '.join(done)} = None")
    return "\n".join(out) + "\n"


def shape_of(arg, dims):
    return [dims[d] if d in dims else int(d) for d in arg["shape"].split()]


def weight_text(task, dims, dtype):
    classes = []
    for arg in task["args"]:
        fields = [
            ("name", f'"{arg["name"]}"'),
            ("original_name", f'"{arg["original"]}"'),
            ("shape", shape_of(arg, dims)),
            ("dtype", f'"torch.{arg.get("dtype", dtype)}"'),
            ("device", '"cpu"'),
            ("mean", arg.get("mean")),
            ("std", arg.get("std")),
            ("data", arg.get("data")),
        ]
        for bound in ("min_val", "max_val"):
            if bound in arg:
                value = arg[bound]
                fields.append((bound, dims[value] - 1 if value in dims else value))
        body = "\n".join(f"\t{key} = {value}" for key, value in fields)
        classes.append(f"class Program_weight_tensor_meta_{arg['original']}:\n{body}\n")
    return "\n\n".join(classes)


def constraints_text(task, dims):
    """Which sizes may change: as extraction records them, arguments sorted by name."""
    symbols = {size: f"S{index}" for index, size in enumerate(task["varies"].split())}
    examples = ", ".join(f"{symbol}: {dims[size]}" for size, symbol in symbols.items())
    lines = ["from sympy import Symbol", ""]
    lines += [f'{symbol} = Symbol("{symbol}")' for symbol in symbols.values()]
    lines += ["", f"dynamic_dim_constraint_symbols = [{', '.join(symbols.values())}]"]
    lines += ["", f"dynamic_dim_constraint_symbol2example_value = {{{examples}}}"]
    lines += ["", "dynamic_dim_constraint_relations = []", "", "dynamic_dim_constraint_input_shapes = ["]
    for arg in sorted(task["args"], key=lambda arg: arg["name"]):
        shape = [symbols.get(size, str(dims.get(size, size))) for size in arg["shape"].split()]
        lines.append(f'    ([{", ".join(shape)}], "{arg["name"]}"),')
    return "\n".join([*lines, "]"]) + "\n"


def write_graph(folder, task, dims, dtype):
    folder.mkdir(parents=True)
    model = model_text(task, dims)
    weights = weight_text(task, dims, dtype)
    meta = {
        "framework": "torch",
        "num_devices_required": 1,
        "num_nodes_required": 1,
        "dynamic": False,
        "model_name": task["name"],
    }
    (folder / "model.py").write_text(model)
    (folder / "weight_meta.py").write_text(weights)
    (folder / "input_meta.py").write_text("")
    (folder / "input_tensor_constraints.py").write_text(constraints_text(task, dims))
    (folder / "graph_net.json").write_text(json.dumps(meta, indent=4) + "\n")
    (folder / "graph_hash.txt").write_text(hashlib.sha256(model.encode()).hexdigest())
    return hashlib.sha256((task["name"] + model + weights).encode()).hexdigest()[:32]


def write_task(folder, task):
    graphs, uids = [], []
    for dtype, dims in task["variants"]:
        shape = "x".join(str(d) for d in shape_of(task["args"][0], dims))
        path = f"graphs/{dtype}_{shape}"
        uids.append(write_graph(folder / path, task, dims, dtype))
        graphs.append(path)
    (folder / "graph_list.txt").write_text("".join(f"{path}\n" for path in graphs))
    (folder / "sample_uids.txt").write_text(",".join(uids))
    (folder / "pass_dir").mkdir()
    (folder / "pass_dir" / ".ignore").write_text("")


def write_all(out, tasks):
    for task in tasks:
        folder = out / task["name"]
        if folder.exists():
            shutil.rmtree(folder)
        folder.mkdir(parents=True)
        write_task(folder, task)
    print(f"{len(tasks)} tasks, {sum(len(task['variants']) for task in tasks)} graphs in {out}")


def main():
    out = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parent.parent / "bench")
    write_all(out / "tasks", TASKS)
    write_all(out / "redteam" / "tasks", REDTEAM_TASKS)


if __name__ == "__main__":
    main()
