#!/usr/bin/env python3
"""How much of real Triton code is accepted here: every kernel of a folder, compiled by Triton and read by passnet.

    python tools/real_kernels.py FOLDER … --passnet target/release/passnet
    python tools/real_kernels.py FOLDER … --equal 150        run accepted kernels against Triton's interpreter, too
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
    """A file that says what it takes and launches the kernel on it: the format of our fixtures.

    One program runs: with guessed strides several would write over each other.
    """
    lines, params, setup, call = ["# wrapper: launch"], [], [], []
    sizes = numbers([name for name, arg in guess.items() if arg.kind == "int"])
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
            call.append(f"{name}={sizes[name]}")
        else:
            call.append(f"{name}={arg.value}")
    lines.append(excerpt.text())
    if setup:
        lines.append("from triton.tools.tensor_descriptor import TensorDescriptor")
    lines += ["", f"def launch({', '.join(params)}):", *setup, f"    {excerpt.name}[(1,)]({', '.join(call)})",
              f"    return ({', '.join(params)}{',' if len(params) == 1 else ''})"]
    return "\n".join(lines) + "\n"


def numbers(names):
    """Sizes that fit the buffers, no multiples of a block; strides of one tensor step over each other, the last is 1."""
    found, groups = {name: 50 for name in names}, collections.defaultdict(list)
    for name in names:
        if "stride" in name.lower():
            stem, _, last = name.rpartition("_")
            groups[stem if len(last) > 2 else name[:-1]].append(name)
    for group in groups.values():
        for place, name in enumerate(reversed(group)):
            found[name] = min(64**place, 4096)
    return found


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


def equality(results, args, folder):
    """Runs accepted kernels here and in Triton's interpreter, floats in float32 and in float16."""
    accepted = [r for r in results if r["compiled"] and r["refused"] is None]
    chosen = accepted[:: max(1, len(accepted) // args.equal)]
    pairs = [(result, dtype) for dtype in ("float32", "float16") for result in chosen]
    with ThreadPoolExecutor(args.jobs) as pool:
        ran = list(pool.map(lambda pair: run_here(args, folder, *pair), pairs))
    answers = interpreted([dump for dump in ran if isinstance(dump, Path)], args)
    rows = collections.defaultdict(dict)
    for (result, dtype), dump in zip(pairs, ran):
        rows[result["file"], result["kernel"]][dtype] = answers[dump] if isinstance(dump, Path) else dump
    for dtype in ("float32", "float16"):
        counts = collections.Counter(row[dtype].split(":")[0] for row in rows.values())
        compared = counts["equal"] + counts["different"]
        print(f"{dtype}: {counts['equal']} of {compared} equal to Triton's interpreter; {dict(counts)}", file=sys.stderr)
    for (file, kernel), row in rows.items():
        if args.json or any(answer.startswith("different") for answer in row.values()):
            print(json.dumps({"file": file, "kernel": kernel, **row}))


def run_here(args, folder, result, dtype):
    """Where the outputs of a run lie, or why there are none."""
    text = Path(result["path"]).read_text()
    typed = re.sub(r"^(# input: \S+) float(32|16) ", rf"\1 {dtype} ", text, flags=re.M)
    if dtype != "float32" and typed == text:
        return "no float32 in its arguments"
    path = Path(folder) / f"{Path(result['path']).stem}_{dtype}.py"
    path.write_text(typed)
    dump = path.with_suffix(".safetensors")
    done = subprocess.run([args.passnet, "kernel", "run", str(path), "--dump", str(dump), "--repeat", "1", "--json"],
                          capture_output=True, text=True)
    return dump if done.returncode == 0 else f"not run here: {construct(done.stderr)}"


def interpreted(dumps, args):
    """What the interpreter says to each: one process for each job, which forks for each kernel."""
    environment = {**os.environ, "TRITON_INTERPRET": "1", "PYTHONPATH": str(Path(__file__).resolve().parents[1] / "python")}

    def share(mine):
        command = [sys.executable, __file__, "--compare", str(3 * args.seconds)]
        done = subprocess.run(command, input="\n".join(map(str, mine)), capture_output=True, text=True, env=environment)
        return dict(zip(mine, done.stdout.splitlines()))

    with ThreadPoolExecutor(args.jobs) as pool:
        shares = pool.map(share, [dumps[job :: args.jobs] for job in range(args.jobs)])
        return {dump: answer for part in shares for dump, answer in part.items()}


def compare_all(limit_s):
    """In a process of its own, with the interpreter: one line for each dump that standard input names."""
    import passnet.kernels.triton_fixtures  # noqa: F401 - loaded once, before the forks

    for line in sys.stdin.read().split():
        handle, answer = tempfile.mkstemp()
        os.close(handle)
        pid = os.fork()
        if pid == 0:
            try:
                signal.alarm(limit_s)
                os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # kernels print
                Path(answer).write_text(compare(Path(line)))
            finally:
                os._exit(0)
        os.waitpid(pid, 0)
        print(Path(answer).read_text() or "not run by the interpreter: crashed or took too long", flush=True)
        os.unlink(answer)


def compare(dump):
    """Whether the interpreter's outputs are those of a run here."""
    from passnet.kernels.triton_fixtures import read_safetensors, run, worst_error

    limits = {"torch.float16": 2e-3, "torch.bfloat16": 1.6e-2, "torch.float32": 2e-6}
    try:
        theirs, *_ = run(dump.with_suffix(".py"), "cpu")
    except Exception as error:  # noqa: BLE001 - what the interpreter cannot run is counted
        return f"not run by the interpreter: {last_line(error)}"
    ours, worst = read_safetensors(dump), 0.0
    for index, output in enumerate(theirs):
        worst = max(worst, worst_error(ours[f"output.{index}"], output) / limits.get(str(output.dtype), 1e-30))
    return "equal" if worst <= 1.0 else f"different: {worst:.3g} times the tolerance"


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
    if sys.argv[1:2] == ["--compare"]:
        compare_all(int(sys.argv[2]))
        return 0
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--passnet", default="target/release/passnet")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--limit", type=int, help="look at about so many kernels of each project")
    parser.add_argument("--match", help="only kernels whose FILE:NAME this expression finds")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--seconds", type=int, default=60, help="for one kernel, in Triton")
    parser.add_argument("--equal", type=int, default=0, help="run so many accepted kernels against Triton's interpreter")
    parser.add_argument("--keep", help="keep the excerpts in this folder")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        results = measure(args, folder)
        report(results, args)
        if args.equal:
            equality(results, args, folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
