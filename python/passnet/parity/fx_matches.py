"""Asks torch.fx where patterns match, so that `--semantics reference` can be held to its answers.

A case is a pattern and a graph, both as text, with the matches torch.fx finds: lists of operation indices.

    python -m passnet.parity.fx_matches generate --count 600 --seed 1 OUT.jsonl    random patterns in random graphs
    python -m passnet.parity.fx_matches cut --count 400 --seed 1 CORPUS OUT.jsonl  pieces cut from real graphs
    python -m passnet.parity.fx_matches bugs                                       torch.fx's known mistakes, live
    python -m passnet.parity.fx_matches time < REQUEST.json                        seconds torch.fx needs, every pattern on every graph

`PASSNET_FX_CASES=OUT.jsonl cargo test -p passnet-pass --test fx_parity` compares. `time` is asked by the benchmark
`crates/passnet-pass/examples/match_speed.rs`.
"""

from __future__ import annotations

import argparse
import ast
import gc
import inspect
import json
import math
import operator
import random
import sys
import time
from pathlib import Path
from typing import Any

import torch
import torch.fx
import torch.nn.functional as F
from torch.fx.passes.utils.matcher_utils import SubgraphMatcher

BINARY = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod, ast.Pow: operator.pow, ast.MatMult: operator.matmul,
    ast.BitAnd: operator.and_, ast.BitOr: operator.or_, ast.BitXor: operator.xor,
}  # fmt: skip
IN_PLACE = {
    ast.Add: operator.iadd, ast.Sub: operator.isub, ast.Mult: operator.imul, ast.Div: operator.itruediv,
    ast.FloorDiv: operator.ifloordiv, ast.BitAnd: operator.iand, ast.BitOr: operator.ior,
}  # fmt: skip
COMPARE = {
    ast.Gt: operator.gt, ast.Lt: operator.lt, ast.GtE: operator.ge, ast.LtE: operator.le,
    ast.Eq: operator.eq, ast.NotEq: operator.ne,
}  # fmt: skip
UNARY = {ast.USub: operator.neg, ast.Invert: operator.invert, ast.UAdd: operator.pos}


class Unsupported(Exception):
    """A statement this tool does not turn into a node."""


class GraphBuilder:
    """Builds an fx graph from the statements of `forward`, one node for each operation, as written."""

    def __init__(self, parameters: list[str]) -> None:
        self.graph = torch.fx.Graph()
        self.names: dict[str, Any] = {name: self.graph.placeholder(name) for name in parameters}
        self.calls: list[torch.fx.Node] = []

    def add(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any] | None = None) -> torch.fx.Node:
        make = self.graph.call_method if isinstance(target, str) else self.graph.call_function
        node = make(target, args, kwargs or {})
        self.calls.append(node)
        return node

    def statement(self, stmt: ast.stmt) -> None:
        if isinstance(stmt, ast.Assign):
            target = stmt.targets[0]
            if isinstance(target, ast.Subscript):
                args = (self.value(target.value), self.value(target.slice), self.value(stmt.value))
                self.add(operator.setitem, args)
                return
            value = self.value(stmt.value)
            for target in stmt.targets:
                self.names[target.id] = value  # type: ignore[attr-defined]
        elif isinstance(stmt, ast.AugAssign):
            target = IN_PLACE[type(stmt.op)]
            node = self.add(target, (self.value(stmt.target), self.value(stmt.value)))
            self.names[stmt.target.id] = node  # type: ignore[union-attr]
        elif isinstance(stmt, ast.Return):
            self.graph.output(self.value(stmt.value))  # type: ignore[arg-type]
        elif isinstance(stmt, ast.Expr):
            self.value(stmt.value)
        else:
            raise Unsupported(ast.dump(stmt))

    def value(self, expr: ast.expr) -> Any:  # noqa: PLR0911 - one case for each kind of expression
        match expr:
            case ast.Constant():
                return expr.value
            case ast.Name(id=name) if name in self.names:
                return self.names[name]
            case ast.Tuple(elts=items):
                return tuple(self.value(item) for item in items)
            case ast.List(elts=items):
                return [self.value(item) for item in items]
            case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=number)):
                return -number
            case ast.UnaryOp(op=ast.USub(), operand=ast.Name(id="inf")):
                return float("-inf")
            case ast.UnaryOp(op=op, operand=operand):
                return self.add(UNARY[type(op)], (self.value(operand),))
            case ast.BinOp(left=left, op=op, right=right):
                return self.add(BINARY[type(op)], (self.value(left), self.value(right)))
            case ast.Compare(left=left, ops=[op], comparators=[right]):
                return self.add(COMPARE[type(op)], (self.value(left), self.value(right)))
            case ast.Subscript(value=value, slice=index):
                return self.add(operator.getitem, (self.value(value), self.value(index)))
            case ast.Slice(lower=a, upper=b, step=c):
                return slice(*(None if part is None else self.value(part) for part in (a, b, c)))
            case ast.Call():
                return self.call(expr)
            case ast.Attribute(value=value, attr=name):
                path = ast.unparse(expr)
                if path.split(".")[0] in ("torch", "inf", "nan"):
                    return eval(path, {"torch": torch})  # noqa: S307 - a dotted path below torch
                return self.add(getattr, (self.value(value), name))
            case ast.Name(id="inf"):
                return float("inf")
            case ast.Name(id="Ellipsis"):
                return ...
        raise Unsupported(ast.dump(expr))

    def call(self, expr: ast.Call) -> Any:
        args = tuple(self.value(arg) for arg in expr.args)
        kwargs = {keyword.arg: self.value(keyword.value) for keyword in expr.keywords if keyword.arg}
        if isinstance(expr.func, ast.Name):
            constructors = {"slice": slice, "device": torch.device, "float": float}
            if expr.func.id in constructors:
                return constructors[expr.func.id](*args, **kwargs)
            raise Unsupported(expr.func.id)
        path = ast.unparse(expr.func)
        first = path.split(".")[0]
        if first == "torch":
            target: Any = torch
            for part in path.split(".")[1:]:
                target = getattr(target, part)
            if target is torch.device:
                return torch.device(*args, **kwargs)
            return self.add(target, args, kwargs)
        assert isinstance(expr.func, ast.Attribute)
        return self.add(expr.func.attr, (self.value(expr.func.value), *args), kwargs)


def build_graph(parameters: list[str], body: str) -> GraphBuilder:
    builder = GraphBuilder(parameters)
    for stmt in ast.parse(body).body:
        builder.statement(stmt)
    return builder


class ForceArgsTracer(torch.fx.Tracer):
    """Traces a pattern as the reference does: calls with a signature become all positional."""

    def create_node(self, kind: str, target: Any, args: Any, kwargs: Any, *rest: Any, **more: Any) -> torch.fx.Node:
        if kind == "call_function":
            try:
                bound = inspect.signature(target).bind(*args, **kwargs)
                bound.apply_defaults()
                args, kwargs = bound.args, bound.kwargs
            except (TypeError, ValueError):
                pass
        return super().create_node(kind, target, args, kwargs, *rest, **more)


def trace_pattern(parameters: str, body: str) -> torch.fx.Graph:
    lines = "\n    ".join(body.splitlines())
    scope: dict[str, Any] = {"torch": torch, "F": F, "operator": operator}
    exec(f"def pattern({parameters}):\n    {lines}\n", scope)  # noqa: S102 - text this tool wrote
    return ForceArgsTracer().trace(scope["pattern"])


def find(pattern: torch.fx.Graph, builder: GraphBuilder) -> list[list[int]] | str:
    """Operation indices of every match, or the name of the exception."""
    try:
        matcher = SubgraphMatcher(pattern, match_output=False, match_placeholder=False, remove_overlapping_matches=True)
        matches = matcher.match(builder.graph)
    except (KeyError, AssertionError) as error:
        return type(error).__name__
    index = {node: position for position, node in enumerate(builder.calls)}
    found = []
    for match in matches:
        nodes = [g for p, g in match.nodes_map.items() if p.op not in ("placeholder", "output")]
        found.append(sorted(index[node] for node in nodes))
    return found


# Random cases.

UNARY_FORMS = [
    "torch.relu({0})", "{0}.relu()", "F.relu({0})", "F.relu({0}, inplace=False)", "F.relu({0}, False)", "-{0}",
    "{0}.sin()", "torch.sin({0})", "F.gelu({0})", "F.gelu({0}, approximate='none')", "F.silu({0})", "F.silu({0}, False)",
    "F.softmax({0}, dim=-1)", "F.softmax({0}, -1, 3, None)", "torch.softmax({0}, -1)", "{0}.softmax(-1)",
    "{0}.view(1, -1)", "{0}.view((1, -1))", "{0}.transpose(0, 1)", "torch.transpose({0}, 0, 1)", "{0}[0]", "{0}[(0, None)]",
    "{0} * 2", "{0} * 2.0", "{0} * True", "2 * {0}", "1 - {0}", "{0} + 1", "{0} + 1.0", "{0} / 8.0",
    "F.dropout({0}, 0.1, False)", "F.dropout({0}, 0.1, False, False)", "F.dropout({0}, p=0.1, training=False)",
    "{0}.sum(dim=1)", "{0}.sum(1)", "torch.sum({0}, 1)", "torch.sum({0}, dim=1)", "{0}.mean(-1, keepdim=True)",
    "F.layer_norm({0}, (4,))", "F.layer_norm({0}, [4])", "F.layer_norm({0}, (4,), None, None, 1e-05)",
    "{0}.to(torch.float32)", "{0}.to(dtype=torch.float32)", "F.pad({0}, (1, 1))", "F.pad({0}, [1, 1], 'constant', None)",
    "F.max_pool2d({0}, 2)", "F.max_pool2d({0}, 2, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False)",
    "F.interpolate({0}, scale_factor=2)", "{0}.chunk(2, dim=-1)", "torch.chunk({0}, 2, -1)", "torch.split({0}, 2)",
    "torch.split({0}, 2, 0)", "{0}.shape", "{0}.T", "{0}.contiguous()", "{0}[slice(None, 2, None)]",
]  # fmt: skip
BINARY_FORMS = [
    "{0} + {1}", "torch.add({0}, {1})", "{0}.add({1})", "torch.add({0}, {1}, alpha=1)", "{0} * {1}", "{0} - {1}",
    "{0} @ {1}", "torch.matmul({0}, {1})", "{0}.matmul({1})", "torch.cat([{0}, {1}])", "torch.cat(({0}, {1}))",
    "torch.cat([{0}, {1}], dim=1)", "torch.cat([{0}, {1}], 1)", "torch.stack([{0}, {1}])", "F.linear({0}, {1})",
    "F.linear({0}, {1}, None)", "torch._C._nn.linear({0}, {1}, None)", "{0} > {1}", "{0}.masked_fill({1}, 0.0)",
    "torch.where({0}, {1}, 0.0)", "F.embedding({0}, {1})", "F.embedding({0}, {1}, None, None, 2.0, False, False)",
]  # fmt: skip


class Statements:
    """Straight-line code: names, the form of each operation and the names it uses."""

    def __init__(self, inputs: list[str]) -> None:
        self.inputs = inputs
        self.lines: list[tuple[str, str, list[str]]] = []

    def random(self, rng: random.Random, count: int, forms: list[str]) -> None:
        names = list(self.inputs)
        for index in range(count):
            form = rng.choice(forms)
            uses = [rng.choice(names[-5:]) for _ in range(2 if "{1}" in form else 1)]
            name = f"t{index}"
            self.lines.append((name, form, uses))
            names.append(name)


def text_of(form: str, uses: list[str], *, public: bool) -> str:
    text = form.format(*uses)
    return text.replace("F.", "torch.nn.functional.") if public else text


def graph_body(code: Statements, rng: random.Random) -> str:
    used = {name for _, _, uses in code.lines for name in uses}
    returned = [name for name, _, _ in code.lines if name not in used or rng.random() < 0.15]
    lines = [f"{name} = {text_of(form, uses, public=True)}" for name, form, uses in code.lines]
    return "\n".join([*lines, f"return ({', '.join(returned)},)"])


def cut_pattern(code: Statements, rng: random.Random, forms: list[str]) -> tuple[str, str] | None:
    """A connected piece of the graph as a pattern, sometimes with one operation changed."""
    producer = {name: (form, uses) for name, form, uses in code.lines}
    piece = [rng.choice(code.lines)[0]]
    for _ in range(rng.randrange(4)):
        around = [use for name in piece for use in producer[name][1] if use in producer and use not in piece]
        around += [n for n, _, uses in code.lines if n not in piece and any(use in piece for use in uses)]
        if around:
            piece.append(rng.choice(around))
    piece.sort(key=lambda name: int(name[1:]))
    changed = rng.choice(piece) if rng.random() < 0.4 else None
    parameters: dict[str, str] = {}
    split = rng.random() < 0.2
    lines = []
    for name in piece:
        form, uses = producer[name]
        if name == changed:
            same = [other for other in forms if ("{1}" in other) == ("{1}" in form)]
            form = rng.choice(same)
        renamed = []
        for use in uses:
            if use in piece:
                renamed.append(use)
            else:
                key = f"{use}.{len(parameters)}" if split else use
                renamed.append(parameters.setdefault(key, f"p{len(parameters)}"))
        lines.append(f"{name} = {text_of(form, renamed, public=False)}")
    inner = {use for name in piece for use in producer[name][1]}
    outside = {use for name, _, uses in code.lines if name not in piece for use in uses}
    returned = [n for n in piece if n not in inner or (n in outside and rng.random() < 0.6)]
    if rng.random() < 0.3:
        rng.shuffle(returned)
    return ", ".join(parameters.values()), "\n".join([*lines, f"return {', '.join(returned)}"])


def random_pattern(rng: random.Random, forms: list[str]) -> tuple[str, str] | None:
    code = Statements(["p0", "p1"])
    code.random(rng, rng.randrange(1, 4), forms)
    used = {name for _, _, uses in code.lines for name in uses}
    parameters = [name for name in code.inputs if name in used]
    returned = [name for name, _, _ in code.lines if name not in used]
    lines = [f"{name} = {text_of(form, uses, public=False)}" for name, form, uses in code.lines]
    return ", ".join(parameters), "\n".join([*lines, f"return {', '.join(returned)}"])


def generate(count: int, seed: int) -> list[dict[str, Any]]:
    rng = random.Random(seed)
    cases: list[dict[str, Any]] = []
    while len(cases) < count:
        # Few forms make repetitions, and repetitions make ambiguity.
        forms = rng.sample(UNARY_FORMS, rng.randrange(2, 8)) + rng.sample(BINARY_FORMS, rng.randrange(1, 4))
        code = Statements(["in_0", "in_1", "in_2"])
        code.random(rng, rng.randrange(2, 14), forms)
        body = graph_body(code, rng)
        made = random_pattern(rng, forms) if rng.random() < 0.3 else cut_pattern(code, rng, forms)
        if made is None:
            continue
        case = judge(["in_0", "in_1", "in_2"], body, *made)
        # Cases in which nothing can match teach little: keep one in four.
        if case is not None and (case["matches"] or rng.random() < 0.25):
            cases.append(case)
    return cases


def judge(inputs: list[str], body: str, parameters: str, pattern_body: str) -> dict[str, Any] | None:
    try:
        pattern = trace_pattern(parameters, pattern_body)
        builder = build_graph(inputs, body)
    except Exception:  # noqa: BLE001 - torch.fx cannot trace it: not a case
        return None
    return {
        "inputs": ", ".join(inputs), "graph": body, "parameters": parameters, "pattern": pattern_body,
        "matches": find(pattern, builder),
    }  # fmt: skip


# Real cases.


def straight_line(model: Path) -> list[tuple[str, ast.stmt]]:
    """The operations of a `model.py` with aliases resolved and one new name for each result."""
    tree = ast.parse(model.read_text())
    forward = next(node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.name == "forward")
    names = {arg.arg: arg.arg for arg in forward.args.args}

    class Rename(ast.NodeTransformer):
        def visit_Name(self, node: ast.Name) -> ast.Name:  # noqa: N802 - the visitor's own spelling
            return ast.Name(names.get(node.id, node.id), node.ctx)

    found: list[tuple[str, ast.stmt]] = []
    for stmt in forward.body:
        match stmt:
            case ast.Assign(value=ast.Constant(value=None)):
                continue
            case ast.Assign(targets=targets, value=ast.Name(id=name)) if isinstance(targets[0], ast.Name):
                for target in targets:
                    names[target.id] = names.get(name, name)  # type: ignore[attr-defined]
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                new = f"n{len(found)}"
                value = Rename().visit(value)
                found.append((new, ast.Assign([ast.Name(new)], value)))
                names[name] = new
            case ast.AugAssign(target=ast.Name(id=name)):
                found.append((names[name], Rename().visit(stmt)))
            case ast.Return():
                break
            case _:
                raise Unsupported(ast.unparse(stmt))
    return found


def used_names(stmt: ast.stmt) -> set[str]:
    roots = {"torch", "slice", "device", "inf", "float", "Ellipsis", "nan"}
    nodes = ast.walk(stmt.value)  # type: ignore[attr-defined]
    used = {node.id for node in nodes if isinstance(node, ast.Name)}
    if isinstance(stmt, ast.AugAssign):
        used.add(stmt.target.id)  # type: ignore[union-attr]
    return used - roots


def cut(corpus: Path, count: int, seed: int) -> list[dict[str, Any]]:
    rng = random.Random(seed)
    models = sorted(corpus.rglob("model.py"))
    cases: list[dict[str, Any]] = []
    attempts = 0
    while len(cases) < count and attempts < count * 20:
        attempts += 1
        try:
            code = straight_line(rng.choice(models))
        except (Unsupported, KeyError, StopIteration):
            continue
        if len(code) < 6:
            continue
        start = rng.randrange(len(code))
        window = code[start : start + rng.randrange(6, 60)]
        length = rng.randrange(1, 6)
        at = rng.randrange(max(1, len(window) - length))
        case = cut_case(window, window[at : at + length], rng)
        if case is not None and (case["matches"] or rng.random() < 0.3):
            cases.append(case)
    return cases


def free_names(code: list[tuple[str, ast.stmt]]) -> list[str]:
    """Names that statements use before they define them, in order of their first use."""
    defined: set[str] = set()
    found: list[str] = []
    for name, stmt in code:
        found += [use for use in sorted(used_names(stmt)) if use not in defined and use not in found]
        defined.add(name)
    return found


def cut_case(window: list[tuple[str, ast.stmt]], piece: list[tuple[str, ast.stmt]], rng: random.Random) -> dict[str, Any] | None:
    inputs = free_names(window)
    uses = {use for _, stmt in window for use in used_names(stmt)}
    returned = [name for name, _ in window if name not in uses] or [window[-1][0]]
    body = "\n".join([*(ast.unparse(ast.fix_missing_locations(stmt)) for _, stmt in window), f"return ({', '.join(returned)},)"])
    parameters = free_names(piece)
    inside = {use for _, stmt in piece for use in used_names(stmt)}
    outside = {use for pair in window if pair not in piece for use in used_names(pair[1])}
    out = [n for n, _ in piece if n not in inside or (n in outside and rng.random() < 0.8)]
    out = list(dict.fromkeys(out))
    lines = []
    for name, stmt in piece:
        if isinstance(stmt, ast.AugAssign):
            # torch.fx traces `+=` as an addition; the function says what is meant.
            function = IN_PLACE[type(stmt.op)].__name__
            lines.append(f"{name} = operator.{function}({ast.unparse(stmt.target)}, {ast.unparse(stmt.value)})")
        else:
            lines.append(ast.unparse(ast.fix_missing_locations(stmt)))
    if "device(" in body or not out:
        return None
    return judge(inputs, body, ", ".join(parameters), "\n".join([*lines, f"return {', '.join(out)}"]))


# Bugs.


def show_bugs() -> None:
    """Runs torch.fx's rewriter into its known mistakes and prints what happens."""

    def run(title: str, inputs: list[str], body: str, pattern: tuple[str, str], replacement: tuple[str, str]) -> None:
        builder = build_graph(inputs, body)
        module = torch.fx.GraphModule(torch.nn.Module(), builder.graph)
        try:
            torch.fx.subgraph_rewriter.replace_pattern_with_filters(module, trace_pattern(*pattern), trace_pattern(*replacement))
            module.graph.lint()
            outcome = "runs: " + "; ".join(str(node.format_node()) for node in module.graph.nodes if node.op.startswith("call"))
        except Exception as error:  # noqa: BLE001 - the mistake is the point
            outcome = f"{type(error).__name__}: {str(error).splitlines()[0]}"
        print(f"{title}\n    {outcome}")

    run("adjacent matches that refer to erased nodes", ["a", "b", "c"],
        "t0 = torch.cat([a, b])\nt1 = t0.relu()\nt2 = torch.cat([t1, c])\nt3 = t2.relu()\nreturn (t3,)",
        ("x", "return torch.cat(x).relu()"), ("x", "return torch.stack(x)"))  # fmt: skip
    run("false match: an argument bound to a list that holds a matched node", ["a", "b"],
        "t0 = a.sin()\nt1 = torch.cat([t0, b])\nreturn (t1,)",
        ("x, y", "t = x.sin()\nreturn torch.cat(y), t"), ("x, y", "return torch.stack(y), x.cos()"))  # fmt: skip
    run("identity replacement", ["a"], "t0 = a.relu()\nt1 = t0.relu()\nreturn (t1,)",
        ("x", "return x.relu()"), ("x", "return x"))  # fmt: skip
    run("keyword named out", ["a", "b", "c"], "t0 = torch.add(a, b, out=c)\nt1 = t0.relu()\nreturn (t1, c)",
        ("x, y, z", "return torch.add(x, y, out=z).relu()"), ("x, y, z", "return torch.mul(x, y)"))  # fmt: skip
    run("use before definition with several outputs", ["a", "b"],
        "t0 = a.sin()\nearly = t0 + 1\nlate = b.exp()\nt1 = late.cos()\nreturn (early, t1)",
        ("x, y", "return x.sin(), y.cos()"), ("x, y", "return x.tan(), y.tan()"))  # fmt: skip
    run("an operation without candidate", ["a"], "t0 = a.sin()\nreturn (t0,)",
        ("x", "return x.sin(), x.cos()"), ("x", "return x.tan(), x.tan()"))  # fmt: skip


# Time.


def read_model(path: Path) -> GraphBuilder:
    """The fx graph of a `model.py`, as written; `x = None` only ends a name."""
    tree = ast.parse(path.read_text())
    forward = next(node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.name == "forward")
    builder = GraphBuilder([arg.arg for arg in forward.args.args if arg.arg != "self"])
    for stmt in forward.body:
        if not (isinstance(stmt, ast.Assign) and isinstance(stmt.value, ast.Constant) and stmt.value.value is None):
            builder.statement(stmt)
    return builder


def read_pattern(path: Path) -> torch.fx.Graph:
    """The traced `pattern` of a pass file, which is not imported."""
    tree = ast.parse(path.read_text())
    function = next(node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == "pattern")
    return trace_pattern(ast.unparse(function.args), "\n".join(ast.unparse(stmt) for stmt in function.body))


def time_matching(request: dict[str, Any], rounds: int) -> dict[str, Any]:
    """CPU seconds torch.fx takes to match each pattern against all graphs, the best of some rounds.

    Patterns and graphs are ready beforehand, and the garbage collector, which would walk through all graphs, is off.
    """
    if "cases" in request:
        cases = request["cases"]
        graphs = [build_graph(case["inputs"].split(", "), case["graph"]).graph for case in cases]
        patterns = [trace_pattern(case["parameters"], case["pattern"]) for case in cases[: request["patterns"]]]
        skipped: list[int] = []
    else:
        patterns = [read_pattern(Path(path)) for path in request["passes"]]
        graphs, skipped = [], []
        for index, path in enumerate(request["models"]):
            try:
                graphs.append(read_model(Path(path)).graph)
            except (Unsupported, KeyError, AttributeError):
                skipped.append(index)
    gc.collect()
    gc.freeze()
    gc.disable()
    answers = []
    for pattern in patterns:
        matcher = SubgraphMatcher(pattern, match_output=False, match_placeholder=False, remove_overlapping_matches=True)
        best = math.inf
        for _ in range(rounds):
            matches = 0
            started = time.process_time()
            for graph in graphs:
                try:
                    matches += len(matcher.match(graph))
                except KeyError:
                    pass
            best = min(best, time.process_time() - started)
        answers.append({"seconds": best, "matches": matches})
    return {"skipped": skipped, "patterns": answers}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    for name in ("generate", "cut"):
        command = commands.add_parser(name)
        command.add_argument("--count", type=int, default=600)
        command.add_argument("--seed", type=int, default=1)
        if name == "cut":
            command.add_argument("corpus", type=Path)
        command.add_argument("output", type=Path)
    commands.add_parser("bugs")
    timing = commands.add_parser("time")
    timing.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    if args.command == "bugs":
        show_bugs()
        return
    if args.command == "time":
        print(json.dumps(time_matching(json.load(sys.stdin), args.rounds)))
        return
    cases = generate(args.count, args.seed) if args.command == "generate" else cut(args.corpus, args.count, args.seed)
    args.output.write_text("".join(json.dumps(case) + "\n" for case in cases))
    matched = sum(1 for case in cases if case["matches"])
    print(f"{len(cases)} cases, {matched} with matches or an exception")


if __name__ == "__main__":
    main()
