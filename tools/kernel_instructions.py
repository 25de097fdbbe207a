#!/usr/bin/env python3
"""What the kernels of passes and of TorchInductor make a GPU do, on a machine without one.

    passnet solve TASKS --no-tune --no-bench --target h200 --out solved
    python tools/kernel_instructions.py --passnet target/release/passnet --passes solved/passes TASKS [--part 0/4]

Both sides are compiled to machine code for an H200: a pass's kernels with the sizes of its launch plan, TorchInductor's with every
configuration that it would race. Of each kernel this counts the instructions that all warps issue together (instructions of the
code times warps: exact where no loop goes around), how often warps wait for each other, and the programs. For each graph the
kernels of both sides are added up, TorchInductor's in its best configuration. What either side leaves to a library, and what passes
leave to eager, is in no column. It says nothing about memory. It shows what a table of times hides: programs too few for the device,
rows shared by warps that wait, places worked out again for every element.

Files of passes and graphs are imported, which `passnet` itself never does: name only passes that the solver or you have written, and
tasks that you would run.
"""

import argparse
import hashlib
import importlib.util
import itertools
import json
import math
import re
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "python"))

import torch  # noqa: E402
import torch._inductor.runtime.triton_helpers as triton_helpers  # noqa: E402
import torch.utils._triton as inductor_triton  # noqa: E402
import triton  # noqa: E402
from passnet.fusion import inductor_schedule  # noqa: E402
from passnet.graphs.replay import read_metas  # noqa: E402
from triton.backends.compiler import GPUTarget  # noqa: E402
from triton.backends.nvidia.compiler import get_ptxas  # noqa: E402
from triton.compiler import ASTSource  # noqa: E402
from triton.runtime import driver  # noqa: E402

TARGET = GPUTarget("cuda", 90, 32)
POINTERS = {
    "float16": "*fp16", "bfloat16": "*bf16", "float32": "*fp32", "float64": "*fp64", "int64": "*i64", "int32": "*i32",
    "int16": "*i16", "int8": "*i8", "uint8": "*u8", "bool": "*i1",
}  # fmt: skip
SCALARS = {"I32": "i32", "I64": "i64", "U64": "u64", "I1": "i1", "F32": "fp32", "F64": "fp64"}
INSTRUCTION = re.compile(r"/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\w+\s+)?([A-Z][A-Z0-9_.]+)")
KERNEL = re.compile(r"^(\w+) = async_compile\.triton\('\w+', '''(.*?)'''", re.DOTALL | re.MULTILINE)
LAUNCH = re.compile(r"^\s+(\w+)\.run\((.*)\)$", re.MULTILINE)
# Arguments that a launch divides by this are known to do so by the compiler.
DIVISOR = 16


@dataclass(frozen=True)
class Work:
    """What one launch makes a device do."""

    instructions: int
    waits: int
    programs: int
    warps: int

    @property
    def issued(self) -> int:
        return self.instructions * self.warps * self.programs


def compiled(source: ASTSource, options: dict[str, Any], programs: int) -> Work:
    kernel = triton.compile(source, target=TARGET, options=options)
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(kernel.asm["cubin"])
        file.flush()
        disassembler = Path(get_ptxas(TARGET.arch).path).with_name("nvdisasm")
        text = subprocess.run([disassembler, "-c", file.name], capture_output=True, text=True, check=True).stdout
    found = [name.split(".")[0] for name in INSTRUCTION.findall(text)]
    return Work(len(found) - found.count("NOP"), found.count("BAR"), programs, kernel.metadata.num_warps)


def module_of(path: Path) -> ModuleType:
    """Our own solver's file, or TorchInductor's: nobody else's belongs here."""
    name = "kernels_" + hashlib.sha256(str(path).encode()).hexdigest()[:16]
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def planned(passnet: str, passes: Path, graph: Path) -> list[Work]:
    """The launches of all passes at all their places in a graph."""
    found = []
    for path in sorted(passes.glob("*.py")):
        if path.name == "kernels.py":
            continue
        answer = subprocess.run(
            [passnet, "kernel", "plan", path, "--graph", graph, "--json"], capture_output=True, text=True, check=False
        )
        for plan in filter(lambda line: "plan" in line, map(json.loads, answer.stdout.splitlines())):
            launches = [step["launch"] for step in plan["plan"]["steps"] if "launch" in step]
            found += [launched(path, launch) for launch in launches] * plan["sites"]
    return found


def launched(path: Path, launch: dict[str, Any]) -> Work:
    types, constants, known = {}, {}, {}
    for at, argument in enumerate(launch["args"]):
        name, ((kind, value),) = argument["name"], argument["value"].items()
        if kind == "buffer":
            types[name] = POINTERS[value["dtype"]]
            if value["offset"] % DIVISOR == 0:
                known[at,] = [["tt.divisibility", DIVISOR]]
            continue
        if kind == "const":
            ((_, number),) = value.items()
            types[name], constants[at,] = "constexpr", number
        elif value["value"] == 1 and kind == "int":
            types[name], constants[at,] = "constexpr", 1
        else:
            types[name] = SCALARS[value["elem"]]
            if kind == "int" and value["value"] % DIVISOR == 0:
                known[at,] = [["tt.divisibility", DIVISOR]]
    options = {name: launch[name] for name in ("num_warps", "num_stages", "enable_fp_fusion")}
    # Passes of a task share one file of kernels, if there are several.
    shared = path.with_name("kernels.py")
    module = module_of(shared if shared.exists() else path)
    source = ASTSource(getattr(module, launch["kernel"]), types, constants, known)
    return compiled(source, options, math.prod(launch["grid"]))


def inductor(graph: Path) -> list[Work]:
    """TorchInductor's kernels for a graph, each in the configuration that issues least."""
    function = module_of(graph / "model.py").GraphModule()
    metas = {meta.name: meta for name in ("weight_meta.py", "input_meta.py") for meta in read_metas(graph / name)}
    names = function.forward.__code__.co_varnames[1 : function.forward.__code__.co_argcount]
    inputs = [torch.empty(metas[name].shape, dtype=metas[name].dtype, device="meta") for name in names]
    found = []
    for text in inductor_schedule.generated_code(function, inputs):
        sources = dict(KERNEL.findall(text))
        for name, arguments in LAUNCH.findall(text):
            if name in sources:
                sizes = [int(word) for word in re.findall(r"(?<=, )\d+(?=,|$)", arguments)]
                found.append(min(configured(sources[name], name, sizes), key=lambda work: work.issued))
    return found


def configured(text: str, name: str, sizes: list[int]) -> Iterator[Work]:
    """A kernel of TorchInductor's in all its configurations."""
    with tempfile.TemporaryDirectory() as place:
        path = Path(place) / "kernel.py"
        path.write_text(text)
        kernel = getattr(module_of(path), name)
        for config in kernel.configs:
            constants = {**kernel.triton_meta.get("constants", {}), **config.kwargs}
            types = {word: kernel.triton_meta["signature"].get(word, "constexpr") for word in kernel.fn.arg_names}
            types |= dict.fromkeys(constants, "constexpr")
            places = {(kernel.fn.arg_names.index(word),): value for word, value in constants.items()}
            known = {key: value for attributes in kernel.triton_meta.get("configs", []) for key, value in attributes.items()}
            # `y` before `x` where there are both; a fold's columns come last and make no programs.
            blocks = [config.kwargs[block] for block in ("YBLOCK", "XBLOCK") if block in config.kwargs]
            programs = math.prod(math.ceil(size / block) for size, block in zip(sizes, blocks, strict=False))
            options = {"num_warps": config.num_warps, "num_stages": config.num_stages}
            yield compiled(ASTSource(kernel.fn, types, places, known), options, programs)


def pretend_gpu() -> None:
    inductor_schedule.pretend_gpu()
    driver.set_active(SimpleNamespace(get_current_target=lambda: TARGET, get_current_device=lambda: 0))
    triton_helpers.set_driver_to_gpu = lambda: None
    # It names the compiler in keys of a cache, and asks the driver for that.
    for module in list(sys.modules.values()):
        if hasattr(module, "triton_hash_with_backend"):
            module.triton_hash_with_backend = lambda *_: "no GPU"
    inductor_triton.triton_hash_with_backend = lambda *_: "no GPU"


def row(name: str, ours: list[Work], theirs: list[Work]) -> str:
    def words(works: list[Work]) -> str:
        total, waits = sum(work.issued for work in works), sum(work.waits for work in works)
        return f"{len(works)} | {total / 1e3:.0f} | {waits} | {'+'.join(str(work.programs) for work in works)}"

    return f"| {name} | {ratio(ours, theirs):.2f} | {words(ours)} | {words(theirs)} |"


def ratio(ours: list[Work], theirs: list[Work]) -> float:
    return sum(work.issued for work in ours) / max(1, sum(work.issued for work in theirs))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tasks", nargs="+", type=Path, help="folders of tasks")
    parser.add_argument("--passes", type=Path, required=True, help="a folder with a folder of passes for each task, by its name")
    parser.add_argument("--passnet", default=str(ROOT / "target/release/passnet"))
    parser.add_argument("--part", default="0/1", help="I/N: every N-th graph, from the I-th on")
    given = parser.parse_args()
    warnings.filterwarnings("ignore")
    pretend_gpu()
    first, step = map(int, given.part.split("/"))
    graphs = [(task.resolve(), graph) for task in given.tasks for graph in (task / "graph_list.txt").read_text().split()]
    header = "kernels | thousands of instructions | waits | programs"
    print(f"| graph | ratio | passes: {header} | TorchInductor: {header} |\n|{'---|' * 10}", flush=True)
    ratios, failed, one_sided = [], 0, 0
    for number, (task, graph) in enumerate(itertools.islice(graphs, first, None, step)):
        try:
            ours, theirs = planned(given.passnet, given.passes / task.name, task / graph), inductor(task / graph)
        except Exception as error:  # noqa: BLE001 (one graph of many)
            print(f"{task.name}/{graph}: {type(error).__name__}: {str(error).splitlines()[0]}", file=sys.stderr)
            failed += 1
            continue
        one_sided += not (ours and theirs)
        if ours and theirs:
            print(row(f"{task.name[:12]} {number * step + first}", ours, theirs), flush=True)
            ratios.append(ratio(ours, theirs))
    print(f"\nleft out: {failed} graphs that could not be compiled here, {one_sided} without kernels on one side")
    if ratios:
        mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
        print(f"{len(ratios)} graphs with kernels of both: {mean:.2f} times TorchInductor's instructions (geometric mean)")
    # Nothing compared is nothing said.
    return 0 if ratios else 1


if __name__ == "__main__":
    sys.exit(main())
