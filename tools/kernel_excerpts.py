"""Cut `@triton.jit` kernels out of the files of a project, each with everything that it reaches.

An excerpt is one text: imports of Triton, constants, helper functions, the kernel. Modules of the project are found by
their path and loaded statement by statement; what cannot be evaluated is left out, and so is every statement that does
more than define or import. Decorators other than those of the language (`autotune`, `heuristics`) are dropped.
"""

import ast
import builtins
import importlib
import linecache
import sys
import types
from pathlib import Path

import triton
import triton.language as tl
from triton.runtime.jit import JITFunction

# What may be imported from outside the project while its files are loaded.
OUTSIDE = {
    "collections", "dataclasses", "enum", "functools", "itertools", "math", "numpy", "operator", "torch", "triton",
    "typing", "typing_extensions",
}
LANGUAGE_DECORATORS = {"jit", "constexpr_function", "aggregate", "_aggregate"}
CALLS_AT_IMPORT = {"constexpr", "getattr", "hasattr", "int", "float", "bool", "str", "tuple", "len", "min", "max", "log2",
                   "exp", "log", "sqrt", "pow", "dtype", "cdiv", "next_power_of_2", "jit", "constexpr_function", "finfo"}


class Refused(Exception):
    """Why no excerpt can be made."""


def dotted(node):
    parts = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(parts)]) if isinstance(node, ast.Name) else ""


def is_jit(node):
    """Whether a function definition is decorated with `triton.jit`, however that is spelled."""
    names = [dotted(d.func if isinstance(d, ast.Call) else d) for d in node.decorator_list]
    return any(name.rsplit(".", 1)[-1] == "jit" and not name.startswith(("torch.", "numba.", "gluon")) for name in names)


class Project:
    """The Python files below a folder, loaded on demand."""

    def __init__(self, root):
        self.root = Path(root).resolve()
        self.modules = {}
        self.by_suffix = {}
        for path in sorted(self.root.rglob("*.py")):
            parts = list(path.relative_to(self.root).with_suffix("").parts)
            if parts[-1] == "__init__":
                parts.pop()
            for start in range(len(parts)):
                self.by_suffix.setdefault(".".join(parts[start:]), path)

    def load(self, path):
        if path in self.modules:
            return self.modules[path]
        module = types.ModuleType(f"excerpted_{len(self.modules)}")
        module.__file__ = str(path)
        module.__annotations__ = {}
        self.modules[path] = module
        sys.modules[module.__name__] = module
        try:
            tree = ast.parse(path.read_text(errors="replace"))
        except (SyntaxError, ValueError):
            return module
        linecache.checkcache(str(path))
        self.block(module, tree.body, path)
        return module

    def block(self, module, statements, path):
        """Runs what can be run; whether all of it could."""
        whole = True
        for statement in statements:
            try:
                whole &= self.statement(module, statement, path)
            except Exception:  # noqa: BLE001 - whatever a foreign statement does, the rest is tried
                whole = False
        return whole

    def statement(self, module, node, path):
        space = module.__dict__
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            return self.imports(module, node, path)
        if isinstance(node, ast.Try):
            if not self.block(module, node.body, path):
                for handler in node.handlers[:1]:
                    self.block(module, handler.body, path)
            return True
        if isinstance(node, ast.If):
            test = ast.Expression(node.test)
            chosen = eval(compile(test, str(path), "eval"), space) if harmless(node.test) else False  # noqa: S307
            return self.block(module, node.body if chosen else node.orelse, path)
        if isinstance(node, ast.FunctionDef):
            kept = [d for d in node.decorator_list
                    if dotted(d.func if isinstance(d, ast.Call) else d).rsplit(".", 1)[-1] in LANGUAGE_DECORATORS]
            node.decorator_list = [d.func if isinstance(d, ast.Call) else d for d in kept]
            node.returns = None
            if kept:
                self.execute(module, node, path)
                value = space.get(node.name)
                while isinstance(value, JITFunction) and not isinstance(value.fn, types.FunctionType):
                    value = value.fn
            return True
        if isinstance(node, ast.ClassDef):
            if any(dotted(d).rsplit(".", 1)[-1] in LANGUAGE_DECORATORS for d in node.decorator_list):
                self.execute(module, node, path)
            return True
        if isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value is not None and harmless(node.value):
            self.execute(module, node, path)
        return True

    def execute(self, module, node, path):
        exec(compile(ast.Module([node], []), str(path), "exec"), module.__dict__)  # noqa: S102

    def imports(self, module, node, path):
        space = module.__dict__
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.split(".")[0] in OUTSIDE:
                    value = importlib.import_module(alias.name)
                    space[alias.asname or alias.name.split(".")[0]] = \
                        value if alias.asname else importlib.import_module(alias.name.split(".")[0])
                elif alias.asname:
                    space[alias.asname] = self.find(alias.name)
            return True
        whole = True
        name = node.module or ""
        for alias in node.names:
            try:
                space[alias.asname or alias.name] = self.imported(name, node.level, alias.name, path)
            except (ImportError, AttributeError, KeyError):
                whole = False
        return whole

    def imported(self, name, level, attribute, path):
        if level == 0 and name.split(".")[0] in OUTSIDE:
            value = importlib.import_module(name)
            if hasattr(value, attribute):
                return getattr(value, attribute)
            return importlib.import_module(f"{name}.{attribute}")
        if attribute == "*":
            raise ImportError(name)
        if level:
            folder = path.parent
            for _ in range(level - 1):
                folder = folder.parent
            target = folder.joinpath(*name.split(".")) if name else folder
            for candidate in (target.with_suffix(".py"), target / "__init__.py"):
                if name and candidate.exists():
                    loaded = self.load(candidate)
                    if hasattr(loaded, attribute):
                        return getattr(loaded, attribute)
            for candidate in (target / f"{attribute}.py", target / attribute / "__init__.py"):
                if candidate.exists():
                    return self.load(candidate)
            raise ImportError(name)
        if attribute in ("tl", "triton"):
            return tl if attribute == "tl" else triton
        try:
            return getattr(self.find(name), attribute)
        except (ImportError, AttributeError):
            return self.find(f"{name}.{attribute}")

    def find(self, name):
        path = self.by_suffix.get(name)
        if path is None:
            raise ImportError(name)
        return self.load(path)


def harmless(expression):
    """Whether an expression of a module only makes constants."""
    for node in ast.walk(expression):
        if isinstance(node, ast.Call) and dotted(node.func).rsplit(".", 1)[-1] not in CALLS_AT_IMPORT:
            return False
        if isinstance(node, (ast.Await, ast.Yield, ast.YieldFrom, ast.NamedExpr)):
            return False
    return True


class Excerpt:
    """One kernel as a text of its own."""

    def __init__(self, kernel):
        self.taken = {}
        self.pieces = []
        self.functions = {}
        self.name = self.function(kernel, kernel.fn.__name__)

    def text(self):
        return "import torch\nimport triton\nimport triton.language as tl\n" + "\n".join(self.pieces)

    def unique(self, name, key):
        """A name that only `key` has."""
        candidate, number = name, 1
        while self.taken.get(candidate, key) != key or (candidate in ("torch", "triton", "tl") and key != candidate):
            number += 1
            candidate = f"{name}_{number}"
        fresh = candidate not in self.taken
        self.taken[candidate] = key
        return candidate, fresh

    def function(self, jit, name):
        name, fresh = self.unique(name, id(jit))
        if not fresh:
            return name
        fn = jit.fn if isinstance(jit, JITFunction) else jit
        node = source_of(fn)
        self.functions[name] = node
        mapping = {}
        for used in sorted(free_names(node)):
            if used in fn.__globals__:
                mapping[used] = self.value(used, fn.__globals__[used], fn.__globals__)
        node = self.rename(node, mapping, fn.__globals__)
        node.name = name
        decorator = "triton.jit" if isinstance(jit, JITFunction) else "triton.constexpr_function"
        self.pieces.append(f"@{decorator}\n{ast.unparse(node)}\n")
        return name

    def rename(self, node, mapping, space):
        excerpt = self

        class Renamer(ast.NodeTransformer):
            def visit_Attribute(self, attribute):
                owner = attribute.value
                module = space.get(owner.id) if isinstance(owner, ast.Name) else None
                if isinstance(module, types.ModuleType) and module.__name__.startswith("excerpted_"):
                    value = getattr(module, attribute.attr, None)
                    return ast.Name(excerpt.value(attribute.attr, value, vars(module)), attribute.ctx)
                self.generic_visit(attribute)
                return attribute

            def visit_Name(self, name):
                name.id = mapping.get(name.id) or name.id
                return name

        return ast.fix_missing_locations(Renamer().visit(node))

    def value(self, name, value, space):
        """The name under which the excerpt has a global of the project."""
        if isinstance(value, JITFunction) and value.fn.__module__.split(".")[0] != "triton":
            return self.function(value, name)
        if type(value).__name__ == "ConstexprFunction" or getattr(value, "__triton_builtin__", None) is False:
            if str(getattr(value, "__module__", "")).startswith("excerpted_"):
                return self.function(getattr(value, "fn", value), name)
        if isinstance(value, types.ModuleType):
            if value.__name__.startswith("excerpted_"):
                return None
            root = {"triton": "triton", "triton.language": "tl", "torch": "torch"}.get(value.__name__)
            if root == name:
                return name
            return self.line(name, value.__name__, f"import {value.__name__} as {{}}")
        if isinstance(value, tl.constexpr):
            return self.line(name, repr(value.value), f"{{}} = tl.constexpr({spelled(value.value)})")
        value = getattr(value, "fn", value) if isinstance(value, JITFunction) else value
        home = getattr(value, "__module__", None)
        if isinstance(value, tl.dtype):
            return self.line(name, str(value), f"{{}} = {spelled(value)}")
        if isinstance(home, str) and home.split(".")[0] in ("triton", "torch", "math") and hasattr(value, "__name__"):
            return self.line(name, f"{home}.{value.__name__}", f"from {home} import {value.__name__} as {{}}")
        if value is None or isinstance(value, (bool, int, float, str, tuple)):
            annotated = "constexpr" in str(space.get("__annotations__", {}).get(name, ""))
            return self.line(name, repr(value), f"{{}}{': tl.constexpr' if annotated else ''} = {spelled(value)}")
        raise Refused(f"global `{name}` is {type(value).__name__}")

    def line(self, name, key, template):
        name, fresh = self.unique(name, key)
        if fresh:
            self.pieces.append(template.format(name))
        return name


def spelled(value):
    if isinstance(value, tl.constexpr):
        return spelled(value.value)
    if isinstance(value, tl.dtype):
        return f"tl.{value}" if not str(value).startswith(("fp", "bf", "int", "uint")) else f"tl.{language_name(value)}"
    if isinstance(value, tuple):
        return "(" + "".join(f"{spelled(v)}, " for v in value) + ")"
    if value is None or isinstance(value, (bool, int, float, str)):
        text = repr(value)
        return f'float("{text}")' if text in ("inf", "-inf", "nan") else text
    raise Refused(f"constant of type {type(value).__name__}")


def language_name(dtype):
    return {"fp16": "float16", "bf16": "bfloat16", "fp32": "float32", "fp64": "float64", "fp8e5": "float8e5",
            "fp8e4nv": "float8e4nv", "fp8e4b8": "float8e4b8", "fp8e5b16": "float8e5b16", "fp8e4b15": "float8e4b15",
            }.get(str(dtype), str(dtype))


def source_of(fn):
    lines = linecache.getlines(fn.__code__.co_filename)
    tree = PARSED.get(fn.__code__.co_filename) or ast.parse("".join(lines))
    PARSED[fn.__code__.co_filename] = tree
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.name == fn.__code__.co_name:
            first = min([node.lineno, *(d.lineno for d in node.decorator_list)])
            if first <= fn.__code__.co_firstlineno <= node.lineno:
                copied = ast.parse(ast.unparse(node)).body[0]
                copied.decorator_list, copied.returns = [], None
                return copied
    raise Refused("no source")


PARSED = {}


def free_names(node):
    used = {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
    local = {a.arg for a in ast.walk(node) if isinstance(a, ast.arg)}
    return {name for name in used if name not in local and not hasattr(builtins, name)}


def kernels(root):
    """(file, name, excerpt or reason) of every kernel below a folder."""
    project = Project(root)
    for path in sorted(project.root.rglob("*.py")):
        text = path.read_text(errors="replace")
        if "jit" not in text:
            continue
        module = project.load(path)
        try:
            tree = ast.parse(text)
        except (SyntaxError, ValueError):
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef) and is_jit(node):
                kernel = getattr(module, node.name, None)
                where = str(path.relative_to(project.root))
                if not isinstance(kernel, JITFunction) or kernel.fn.__module__ != module.__name__:
                    yield where, node.name, "not loaded"
                    continue
                try:
                    yield where, node.name, Excerpt(kernel)
                except (Refused, RecursionError) as reason:
                    yield where, node.name, str(reason)
