"""How torch.fx records calls: the data behind `--semantics reference`.

For every function the operation table knows, this asks PyTorch

- which object it is: two spellings of one object are one target to torch.fx;
- which object a call of it is recorded as while tracing (some functions delegate to another one);
- what Python says its signature is, because the reference lays calls of the pattern out by it.

Run it as `python -m passnet.parity.fx_calls TABLE_DIR OUTPUT` with the folder of the operation table.
"""

from __future__ import annotations

import inspect
import re
import sys
from pathlib import Path
from typing import Any

import torch
import torch.fx

SPELLING = re.compile(r'"((?:torch|math|operator)\.[A-Za-z0-9_.]+)"')


def function_paths(table: Path) -> list[str]:
    found: set[str] = set()
    for file in sorted(table.glob("*.rs")):
        found.update(SPELLING.findall(file.read_text()))
    return sorted(found)


def lookup(path: str) -> Any:
    value: Any = torch
    for part in path.split(".")[1:] if path.startswith("torch.") else []:
        value = getattr(value, part, None)
        if value is None:
            return None
    return value


def inner_signature(function: Any) -> tuple[inspect.Signature | None, bool]:
    """The signature to bind by, and whether the object itself has it.

    Functions made by `boolean_dispatch` take `*args, **kwargs`; what they accept stands in the closure.
    """
    try:
        signature = inspect.signature(function)
    except (ValueError, TypeError):
        return None, False
    if any(p.kind is p.VAR_KEYWORD for p in signature.parameters.values()):
        names = getattr(getattr(function, "__code__", None), "co_freevars", ())
        cells = dict(zip(names, getattr(function, "__closure__", None) or ()))
        if "if_false" in cells:
            return inspect.signature(cells["if_false"].cell_contents), False
        return None, False
    return signature, True


def traced(function: Any, signature: inspect.Signature) -> torch.fx.Node | None:
    """The node that a call with every parameter given by keyword is recorded as."""
    graph = torch.fx.Graph()
    tracer = torch.fx.Tracer()
    tracer.graph = graph
    arguments: dict[str, Any] = {}
    for p in signature.parameters.values():
        if isinstance(p.default, bool):
            # Flags may steer the function, so they cannot be proxies.
            arguments[p.name] = p.default
        elif p.kind is not p.VAR_POSITIONAL:
            arguments[p.name] = tracer.create_proxy("placeholder", p.name, (), {})
    try:
        function(**arguments)
    except Exception:  # noqa: BLE001 - whatever a function does with proxies, it is then kept as written
        return None
    calls = [node for node in graph.nodes if node.op == "call_function"]
    return calls[0] if len(calls) == 1 else None


def literal(value: Any) -> str | None:
    if value is None or isinstance(value, (bool, int, float, str)):
        return repr(value)
    return None


def parameter(p: inspect.Parameter) -> str | None:
    prefix = {p.VAR_POSITIONAL: "*", p.KEYWORD_ONLY: "!"}.get(p.kind, "")
    if p.default is p.empty:
        return prefix + p.name
    default = literal(p.default)
    return None if default is None else f"{prefix}{p.name}={default}"


def describe(path: str, canonical: dict[int, str]) -> str | None:
    function = lookup(path)
    if function is None or not callable(function):
        return None
    same = canonical[id(function)]
    signature, own = inner_signature(function)
    fields = [path, same, same, "-", "-"]
    if signature is not None:
        node = traced(function, signature)
        if node is not None:
            fields[2] = canonical.get(id(node.target), same)
        parameters = [parameter(p) for p in signature.parameters.values()]
        if all(p is not None for p in parameters):
            fields[3] = ", ".join(p for p in parameters if p is not None)
        if not own and node is not None:
            # Kept as recorded: so many positional arguments, then keywords in this order.
            fields[4] = " ".join([str(len(node.args)), *node.kwargs])
        elif not own:
            fields[3] = "-"
    return "\t".join(fields)


def main() -> None:
    table, output = Path(sys.argv[1]), Path(sys.argv[2])
    paths = [path for path in function_paths(table) if lookup(path) is not None]
    canonical: dict[int, str] = {}
    for path in paths:
        canonical.setdefault(id(lookup(path)), path)
    lines = [line for path in paths if (line := describe(path, canonical))]
    header = (
        f"# Made by python/passnet/parity/fx_calls.py with PyTorch {torch.__version__.split('+')[0]}.\n"
        "# spelling, the object's first spelling, what a call is recorded as, signature, layout as recorded\n"
    )
    output.write_text(header + "\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
