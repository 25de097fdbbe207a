#!/usr/bin/env python3
"""How much of real Triton code is accepted here: every kernel of a folder, compiled by Triton and read by passnet.

    python tools/real_kernels.py FOLDER … --passnet target/release/passnet
    python tools/real_kernels.py FOLDER … --json             one line of JSON for each kernel, then one with the totals

Each folder is a project: files find each other by their paths in it. A kernel is cut out with what it reaches
(kernel_excerpts.py), its arguments are guessed (kernel_guesses.py), and the first guess with which Triton makes GPU code
as far as TTGIR for compute capability 9.0 is asked of `passnet kernel plan --ir`. Kernels that Triton refuses with every
guess do not count, nor does the same text twice. Nothing needs a GPU. Statements of the projects' modules that define
constants are evaluated: use code that you would import.
"""

import argparse
import collections
import gc
import importlib.util
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import triton.language as tl
from triton._C.libtriton import ir
from triton.backends.compiler import GPUTarget
from triton.compiler.compiler import ASTSource, make_backend

sys.path.insert(0, str(Path(__file__).resolve().parent))
import kernel_excerpts  # noqa: E402
from kernel_guesses import guesses  # noqa: E402

ELEMENTS = 1 << 16
TRITON_TYPES = {"float32": "fp32", "float16": "fp16", "bfloat16": "bf16", "int32": "i32", "int64": "i64", "uint8": "u8",
                "int8": "i8", "int1": "i1"}
TORCH_TYPES = {"int1": "bool"}


def wrapper(excerpt, guess):
    """A file that says what it takes and launches the kernel on it: the format of our fixtures."""
    lines, params, setup, call = ["# wrapper: launch"], [], [], []
    for name, arg in guess.items():
        if arg.kind in ("pointer", "descriptor"):
            dtype = TORCH_TYPES.get(arg.value, arg.value)
            integer = not arg.value.startswith(("float", "bfloat"))
            filling = ("int 0 2" if dtype == "bool" else "int 0 8") if integer else "normal"
            shape = f"[{ELEMENTS}]" if arg.kind == "pointer" else str([ELEMENTS >> 8, 256] if arg.rank == 2 else [64] * arg.rank)
            lines.append(f"# input: {name} {dtype} {shape} {filling}")
            params.append(name)
            if arg.kind == "descriptor":
                setup.append(f"    {name}_d = TensorDescriptor.from_tensor({name}, {[32] * arg.rank})")
            call.append(f"{name}={name}_d" if arg.kind == "descriptor" else f"{name}={name}")
        elif arg.kind == "int":
            call.append(f"{name}={number(name)}")
        else:
            call.append(f"{name}={arg.value}")
    lines.append(excerpt.text())
    if setup:
        lines.append("from triton.tools.tensor_descriptor import TensorDescriptor")
    lines += ["", f"def launch({', '.join(params)}):", *setup, f"    {excerpt.name}[(2,)]({', '.join(call)})",
              f"    return ({', '.join(params)}{',' if len(params) == 1 else ''})"]
    return "\n".join(lines) + "\n"


def number(name):
    """A size that fits the buffers: strides of rows, counts that no block divides."""
    if "stride" in name.lower():
        return 1 if re.search(r"(last|[dknh]$)", name.lower()) else 64
    return 50


def signature(guess):
    def kind(arg):
        if arg.kind == "pointer":
            return "*" + TRITON_TYPES[arg.value]
        if arg.kind == "descriptor":
            return f"tensordesc<{TRITON_TYPES[arg.value]}{[32] * arg.rank}>".replace(" ", "")
        return {"int": "i32", "float": "fp32"}.get(arg.kind, "constexpr")
    return {name: kind(arg) for name, arg in guess.items()}


def compiles(path, name, guess):
    """None, or why Triton does not compile the kernel."""
    spec = importlib.util.spec_from_file_location("excerpt_under_test", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    constants = {n: eval(a.value, {"tl": tl}) for n, a in guess.items() if a.kind == "const"}  # noqa: S307
    target = GPUTarget("cuda", 90, 32)
    backend = make_backend(target)
    options = backend.parse_options({})
    context = ir.context()
    ir.load_dialects(context)
    backend.load_dialects(context)
    source = ASTSource(getattr(module, name), signature(guess), constants)
    made = source.make_ir(target, options, backend.get_codegen_implementation(options), backend.get_module_map(), context)
    stages, metadata = {}, {}
    backend.add_stages(stages, options, source.language)
    for stage in ("ttir", "ttgir"):
        made = stages[stage](made, metadata)


def first_compiled(excerpt, folder, limit_s):
    """The first guess that Triton compiles, found in a process of its own: compilers crash."""
    handle, answer = tempfile.mkstemp(dir=folder)
    os.close(handle)
    pid = os.fork()
    if pid == 0:
        try:
            signal.alarm(limit_s)
            quiet = os.open(os.devnull, os.O_WRONLY)
            os.dup2(quiet, 1)
            os.dup2(quiet, 2)
            Path(answer).write_text(json.dumps(try_guesses(excerpt, Path(answer + ".py"))))
        finally:
            os._exit(0)
    os.waitpid(pid, 0)
    text = Path(answer).read_text()
    return json.loads(text) if text else {"reason": "Triton crashed or took too long"}


def try_guesses(excerpt, path):
    reason = "no guess"
    for index, guess in enumerate(guesses(excerpt)):
        try:
            path.write_text(wrapper(excerpt, guess))
            compiles(path, excerpt.name, guess)
            return {"guess": index, "text": path.read_text()}
        except Exception as error:  # noqa: BLE001 - whatever Triton raises, the next guess is tried
            reason = last_line(error)
    return {"reason": reason}


def last_line(error):
    cause = error
    while cause.__cause__ is not None:
        cause = cause.__cause__
    lines = [line for line in str(cause).splitlines() if line.strip()]
    return f"{type(cause).__name__}: {lines[-1] if lines else ''}"[:200]


def refusal(passnet, path):
    """None where passnet reads the kernel, else its message."""
    done = subprocess.run([passnet, "kernel", "plan", str(path), "--ir", "--json"], capture_output=True, text=True)
    if done.returncode == 0:
        return None
    return (done.stderr.strip() or done.stdout.strip() or f"exit status {done.returncode}").replace(str(path.parent), "")


def construct(message):
    """A refusal without the names and numbers of its kernel."""
    line = next((x for x in message.splitlines() if "error" in x or ":" in x), message)
    line = re.sub(r"^.*?error:\s*|^\S+:\d+:\d+:\s*", "", line.strip())
    line = re.sub(r"\b\d+(\.\d+)?(e[+-]?\d+)?\b", "N", line)
    return line[:110]


def excerpts(root, seen, args):
    """The kernels of a project that were not seen before."""
    found = []
    for where, name, excerpt in kernel_excerpts.kernels(root):
        if isinstance(excerpt, str):
            continue
        text = excerpt.text()
        if text in seen or args.match and not re.search(args.match, f"{where}:{name}"):
            continue
        seen.add(text)
        found.append(({"project": Path(root).name, "file": where, "kernel": name}, excerpt))
    kernel_excerpts.PARSED.clear()
    return found[:: max(1, len(found) // args.limit)] if args.limit else found


def one(args, folder, number_, result, excerpt):
    answer = first_compiled(excerpt, folder, args.seconds)
    result["compiled"] = "text" in answer
    if not result["compiled"]:
        return {**result, "reason": answer["reason"]}
    path = Path(args.keep or folder) / f"{result['project'].split('+')[-1]}_{number_:05}_{result['kernel']}.py"
    path.write_text(answer["text"])
    return {**result, "path": str(path), "guess": answer["guess"], "refused": refusal(args.passnet, path)}


def measure(args, folder):
    seen, results = set(), []
    if args.keep:
        Path(args.keep).mkdir(parents=True, exist_ok=True)
    for root in args.folders:
        found = excerpts(root, seen, args)
        gc.collect()
        gc.freeze()
        with ThreadPoolExecutor(args.jobs) as pool:
            jobs = [pool.submit(one, args, folder, number_, *pair) for number_, pair in enumerate(found)]
            for job in jobs:
                results.append(job.result())
                if args.json:
                    print(json.dumps({k: v for k, v in results[-1].items() if k != "path"}), flush=True)
        print(f"{Path(root).name}: {len(found)} kernels", file=sys.stderr)
    return results


def report(results, args):
    compiled = [r for r in results if r["compiled"]]
    accepted = [r for r in compiled if r["refused"] is None]
    reasons = collections.Counter(construct(r["refused"]) for r in compiled if r["refused"])
    projects = collections.defaultdict(lambda: [0, 0])
    for r in compiled:
        projects[r["project"]][0] += 1
        projects[r["project"]][1] += r["refused"] is None
    share = 100 * len(accepted) / max(1, len(compiled))
    if args.json:
        print(json.dumps({"kernels": len(results), "compiled": len(compiled), "accepted": len(accepted),
                          "percent": round(share, 2), "refusals": reasons.most_common(), "projects": projects}))
        return
    print(f"{len(results)} kernels, {len(compiled)} compiled by Triton, {len(accepted)} accepted here ({share:.1f} %)")
    for name, (total, ok) in sorted(projects.items()):
        print(f"  {name:40} {ok:5} of {total:5}  {100 * ok / total:5.1f} %")
    for reason, count in reasons.most_common():
        print(f"{count:5}  {reason}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--passnet", default="target/release/passnet")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--limit", type=int, help="look at about so many kernels of each project")
    parser.add_argument("--match", help="only kernels whose FILE:NAME this expression finds")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--seconds", type=int, default=60, help="for one kernel, in Triton")
    parser.add_argument("--keep", help="keep the excerpts in this folder")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        results = measure(args, folder)
        report(results, args)
    return 0


if __name__ == "__main__":
    sys.exit(main())
