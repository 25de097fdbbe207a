"""One Triton kernel compiled to a cubin, without a GPU and without torch.

Reads one request (JSON) from standard input and answers on standard output: one line of JSON, and after it the bytes of
the cubin. It runs inside a sandbox; what it prints otherwise goes to standard error. It needs Triton 3.5 to 3.7.

    {"version": 1, "target": "cuda:90:32", "modules": [{"name", "text"}, …], "module": NAME, "kernel": NAME,
     "parameters": [{"name", "type": "*fp32" | "i32" | …, "divisible": bool} | {"name", "constant": CONST}, …],
     "options": {"num_warps", "num_stages", "enable_fp_fusion", …}}

Parts of a tuple follow each other as parameters `xs.0`, `xs.1.0`. CONST is a constant as launch plans write it: "none", {"int": 3}, {"float": 0.5}, {"elem": "F32"}, {"tuple": […]},
{"function": [0, "relu"]}.
The answer is `{"ok": {"name", "shared", "num_warps", "parameters", "scratch", "registers", …, "bytes"}}`, or
`{"error": {"message", "module", "line"}}`. `--version` prints Triton's version instead.
"""

import importlib
import json
import os
import re
import struct
import sys
import tempfile
from pathlib import Path

REQUEST_VERSION = 1
FLOATS = {"inf": float("inf"), "-inf": float("-inf"), "NaN": float("nan")}


def constant(value, tl, loaded):
    """A constant of a launch plan as the Python value Triton expects; functions are those of the loaded modules."""
    if value == "none":
        return None
    ((kind, content),) = value.items()
    if kind == "float" and isinstance(content, str):
        return FLOATS[content]
    if kind in ("bool", "int", "float", "str"):
        return content
    if kind == "elem":
        return element_type(content, tl)
    if kind == "pointer":
        return tl.pointer_type(element_type(content, tl))
    if kind == "tuple":
        return tuple(constant(item, tl, loaded) for item in content)
    if kind == "function":
        module, name = content
        return getattr(loaded[f"passnet_kernel_{module}"], name)
    raise ValueError(f"unknown constant {value!r}")


def element_type(name, tl):
    if name.startswith("F8"):
        return getattr(tl, "float8" + name[2:].lower())
    names = {"I": "int", "U": "uint", "F": "float", "BF": "bfloat"}
    letters, bits = re.fullmatch(r"([A-Z]+)(\d+)", name).groups()
    return getattr(tl, names[letters] + bits)


def load_modules(modules, folder):
    """Writes the modules where `inspect` finds them and imports them."""
    for module in modules:
        if not re.fullmatch(r"passnet_kernel_\d+", module["name"]):
            raise ValueError(f"unexpected module name {module['name']!r}")
        (folder / f"{module['name']}.py").write_text(module["text"])
    sys.path.append(str(folder))
    sys.dont_write_bytecode = True
    return {module["name"]: importlib.import_module(module["name"]) for module in modules}


def compile_kernel(request, loaded):
    import triton
    import triton.language as tl
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    kernel = getattr(loaded[request["module"]], request["kernel"])
    signature, constants, attributes, run_time = {}, {}, {}, []
    for index, parameter in enumerate(request["parameters"]):
        name, *parts = parameter["name"].split(".")
        place = (kernel.arg_names.index(name), *map(int, parts))
        if "constant" in parameter:
            put(signature, name, place[1:], "constexpr")
            constants[place] = constant(parameter["constant"], tl, loaded)
            continue
        put(signature, name, place[1:], parameter["type"])
        run_time.append(index)
        if parameter.get("divisible"):
            attributes[place] = [["tt.divisibility", 16]]
    signature = {name: tupled(kind) for name, kind in signature.items()}
    source = ASTSource(kernel, signature, constants, attributes)
    backend, arch, warp = request["target"].split(":")
    options = {key: value for key, value in request["options"].items() if value is not None}
    compiled = triton.compile(source, target=GPUTarget(backend, int(arch), int(warp)), options=options)
    metadata = compiled.metadata
    cubin = compiled.asm["cubin"]
    ptx_parameters = count_ptx_parameters(compiled.asm["ptx"], metadata.name)
    description = {
        "name": metadata.name,
        "shared": metadata.shared,
        "num_warps": metadata.num_warps,
        "num_ctas": getattr(metadata, "num_ctas", 1),
        "parameters": run_time,
        "scratch": ptx_parameters - len(run_time),
        "global_scratch": getattr(metadata, "global_scratch_size", 0) or 0,
        "profile_scratch": getattr(metadata, "profile_scratch_size", 0) or 0,
        "registers": registers(cubin),
        "bytes": len(cubin),
    }
    return description, cubin


def put(signature, key, path, kind):
    """Puts the type of a parameter, or of a part of a tuple, where it belongs; parts come in their order."""
    if not path:
        if isinstance(signature, list):
            signature.append(kind)
        else:
            signature[key] = kind
        return
    if isinstance(signature, list):
        if key == len(signature):
            signature.append([])
        inner = signature[key]
    else:
        inner = signature.setdefault(key, [])
    put(inner, path[0], path[1:], kind)


def tupled(kind):
    return tuple(tupled(part) for part in kind) if isinstance(kind, list) else kind


def count_ptx_parameters(ptx, name):
    """How many parameters the entry takes: the run-time arguments and then Triton's scratch pointers."""
    entry = re.search(rf"\.entry\s+{re.escape(name)}\s*\(([^)]*)\)", ptx)
    if entry is None:
        raise ValueError(f"no entry {name} in the PTX")
    return entry.group(1).count(".param")


def registers(cubin):
    """Registers per thread, from the attributes that the cubin keeps in `.nv.info`; None where it does not say."""
    found = None
    try:
        (sections_at,) = struct.unpack_from("<Q", cubin, 40)
        size, count, names_index = struct.unpack_from("<HHH", cubin, 58)

        def section(index):
            fields = struct.unpack_from("<IIQQQQ", cubin, sections_at + index * size)
            return fields[0], fields[4], fields[5]

        _, names_at, _ = section(names_index)
        for index in range(count):
            name_at, at, length = section(index)
            if cubin[names_at + name_at :].split(b"\0", 1)[0] != b".nv.info":
                continue
            end = at + length
            while at + 12 <= end:
                form, attribute, content = struct.unpack_from("<BBH", cubin, at)
                if (form, attribute, content) == (4, 0x2F, 8):  # registers: symbol, count
                    found = max(found or 0, struct.unpack_from("<I", cubin, at + 8)[0])
                at += 4 + (content if form == 4 else 0)
    except (struct.error, ValueError, IndexError):
        pass
    return found


def explain(error, loaded):
    """The message of an error and its place in one of our modules, as exact as Triton gives it."""
    message, module, line = str(error), None, None
    seen = error
    while seen is not None:
        message = str(getattr(seen, "error_message", None) or seen) or type(seen).__name__
        node, source = getattr(seen, "node", None), getattr(seen, "src", None)
        if getattr(node, "lineno", None) is not None and source is not None:
            for name, function in our_functions(loaded):
                if getattr(function, "src", None) == source:
                    # A function begins with its decorator; the text that Triton counts lines in, one line later.
                    module, line = name, function.fn.__code__.co_firstlineno + node.lineno
        seen = seen.__cause__
    # Triton keeps other errors as their `repr`.
    quoted = re.fullmatch(r"(\w+)\((['\"])(.*)\2,?\)", message.strip(), re.DOTALL)
    message = f"{quoted.group(1)}: {quoted.group(3)}" if quoted else message.strip()
    return {"message": message[:4000], "module": module, "line": line}


def our_functions(loaded):
    for name, content in loaded.items():
        for function in vars(content).values():
            code = getattr(getattr(function, "fn", None), "__code__", None)
            if code is not None and code.co_filename.endswith(f"{name}.py"):
                yield name, function


def main():
    if sys.argv[1:] == ["--version"]:
        import importlib.metadata

        print(importlib.metadata.version("triton"))
        return 0
    # Whatever prints while a kernel compiles must not end up in the answer.
    answer = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    request = json.load(sys.stdin)
    if request.get("version") != REQUEST_VERSION:
        raise SystemExit(f"a request of version {request.get('version')}, not {REQUEST_VERSION}")
    cubin = b""
    with tempfile.TemporaryDirectory() as folder:
        os.environ["TRITON_CACHE_DIR"] = str(Path(folder) / "cache")
        # Lines and times of files that nobody can look up would make every cubin different.
        os.environ["TRITON_DISABLE_LINE_INFO"] = "1"
        loaded = {}
        try:
            loaded = load_modules(request["modules"], Path(folder))
            description, cubin = compile_kernel(request, loaded)
            response = {"ok": description}
        except Exception as error:  # noqa: BLE001 - every failure of a kernel is an answer
            response = {"error": explain(error, loaded)}
    answer.write(json.dumps(response).encode() + b"\n")
    answer.write(cubin)
    answer.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
