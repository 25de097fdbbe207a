"""Guess what a kernel's parameters are, from how its text uses them, from annotations and from names.

A guess gives every parameter an `Arg`; `guesses` yields several, likely ones first. The analysis looks through
assignments and through calls of helpers: what reaches the address of a load is a pointer or an index, what is loaded and
reaches an address is an integer, what a block's shape is made of is a power of two.
"""

import ast
import itertools
import re
from dataclasses import dataclass

FLOAT_NAMES = re.compile(r"(eps|scale|alpha|beta|lr|gamma|momentum|prob|^p$|rate|softcap|cap$|theta|decay|temp|slope|factor|"
                         r"lambda|weight_decay|limit|thresh|norm_num|inv_|logit|sm_|value$|min_|max_v|^a$|^b$|ratio|base$|"
                         r"smoothing|margin|sigma|mu$)", re.I)
NOT_FLOAT = re.compile(r"(stride|num|size|len|numel|_id|idx|block|offset|group|dim|seed)", re.I)
POINTER_NAMES = re.compile(r"(ptr|pointer|_p$|^p_)", re.I)
INT_POINTERS = re.compile(r"(idx|index|indices|_ids?(_|$)|ids?_ptr|offset|offs|seqlens?|lens?(_|$)|lengths?|table|slot|loc(_|$)|"
                          r"cu_|indptr|count|labels?|target|segment|position|pos_|perm|expert|topk_ids|chunk_ind|lock|req|"
                          r"token_to|mapping|num_tokens|seed|start|end_|page|block_t)", re.I)
MASK_POINTERS = re.compile(r"(mask|flag|bool|has_)", re.I)
BYTE_POINTERS = re.compile(r"(qweight|packed|uint8|quant_state|absmax_q|code_ptr_u8)", re.I)
BOOL_NAMES = re.compile(r"^(has|use|is|do|with|store|return|load|apply|enable|causal|transpose|trans|reverse|even|save|output|"
                        r"norm_before|keep|add|need|fuse|compute|inplace|forward|varlen|debug|interleaved|swizzle|bias)", re.I)
DTYPE_NAMES = re.compile(r"(dtype|_type$|_ty$|DTYPE|^TYPE|compute_t|out_t$)", re.I)


@dataclass(frozen=True)
class Arg:
    """kind: pointer, int, float, const or descriptor. `value` is the element type, or the constant as text."""

    kind: str
    value: str
    rank: int = 1


class Uses:
    """How the parameters of one function are used, helpers included."""

    def __init__(self, name, functions, busy=()):
        self.functions = functions
        self.busy = (*busy, name)
        self.node = functions[name]
        self.params = [a.arg for a in (*self.node.args.posonlyargs, *self.node.args.args, *self.node.args.kwonlyargs)]
        self.defined = {}
        self.pointers, self.indices, self.int_pointers = set(), set(), set()
        self.powers, self.flags, self.types, self.descriptors = set(), set(), set(), {}
        self.tests = {}
        self.stored = set()
        for statement in ast.walk(self.node):
            if isinstance(statement, ast.Assign):
                for target in statement.targets:
                    self.define(target, statement.value)
            elif isinstance(statement, (ast.AugAssign, ast.AnnAssign)) and statement.value is not None:
                self.define(statement.target, statement.value)
            elif isinstance(statement, ast.For):
                self.define(statement.target, statement.iter)
        for node in ast.walk(self.node):
            if isinstance(node, ast.Call):
                self.call(node)
            elif isinstance(node, (ast.If, ast.IfExp)):
                self.test(node.test)
            elif isinstance(node, ast.Compare):
                self.compare(node)

    def define(self, target, value):
        if isinstance(target, ast.Name):
            self.defined.setdefault(target.id, []).append(value)
        elif isinstance(target, ast.Tuple):
            parts = value.elts if isinstance(value, ast.Tuple) and len(value.elts) == len(target.elts) else None
            for index, part in enumerate(target.elts):
                self.define(part, parts[index] if parts else value)

    def test(self, node):
        if isinstance(node, ast.Name):
            self.flags.add(node.id)
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            self.test(node.operand)
        elif isinstance(node, ast.BoolOp):
            for value in node.values:
                self.test(value)

    def compare(self, node):
        if isinstance(node.left, ast.Name) and len(node.comparators) == 1:
            other = node.comparators[0]
            if isinstance(other, ast.Constant):
                self.tests.setdefault(node.left.id, []).append(repr(other.value))
            elif isinstance(other, ast.Attribute):
                self.tests.setdefault(node.left.id, []).append(ast.unparse(other))

    def call(self, node):
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        named = {k.arg: k.value for k in node.keywords}
        args = node.args
        if name in ("load", "store") or name.startswith("atomic_"):
            owner = getattr(node.func, "value", None)
            if isinstance(owner, ast.Name) and owner.id in self.params:
                if args and isinstance(args[0], (ast.List, ast.Tuple)):
                    self.descriptors[owner.id] = len(args[0].elts)
                return
            address = args[0] if args else named.get("pointer")
            if address is not None:
                bases = self.address(address)
                if name != "load":
                    self.stored |= bases
        elif name in ("make_block_ptr", "make_tensor_descriptor"):
            base = args[0] if args else named.get("base")
            if base is not None:
                self.address(base)
            for value in [*args[1:], *named.values()]:
                if value is not base:
                    self.index(value)
        elif name == "arange":
            for value in [*args, *named.values()]:
                self.power(value)
        elif name in ("zeros", "full"):
            self.power(args[0] if args else named.get("shape"))
        elif name in ("reshape", "view", "broadcast_to"):
            for value in args[1:] + list(named.values()):
                self.power(value)
        elif name in ("static_range", "range"):
            for value in args:
                self.index(value)
        elif name in ("to", "cast") and args:
            for value in args[-1:]:
                if isinstance(value, ast.Name):
                    self.types.add(value.id)
        elif name in self.functions and name not in self.busy and len(self.busy) < 6:
            self.helper(name, args, named)
        if isinstance(named.get("dtype"), ast.Name):
            self.types.add(named["dtype"].id)

    def helper(self, name, args, named):
        inner = Uses(name, self.functions, self.busy)
        for param, value in [*zip(inner.params, args), *named.items()]:
            if isinstance(value, ast.Starred) or param not in inner.params:
                continue
            if param in inner.pointers:
                bases = self.address(value)
                if param in inner.int_pointers:
                    self.int_pointers |= bases
                if param in inner.stored:
                    self.stored |= bases
            if param in inner.indices:
                self.index(value)
            if param in inner.powers:
                self.power(value)
            if isinstance(value, ast.Name):
                for mine, theirs in ((self.flags, inner.flags), (self.types, inner.types)):
                    if param in theirs:
                        mine.add(value.id)
                if param in inner.descriptors:
                    self.descriptors[value.id] = inner.descriptors[param]
                if param in inner.tests:
                    self.tests.setdefault(value.id, []).extend(inner.tests[param])

    def address(self, node, seen=frozenset()):
        """The parameters that an address begins with; everything else in it is an index."""
        if isinstance(node, ast.Name):
            if node.id in self.params and node.id not in self.defined:
                self.pointers.add(node.id)
                return {node.id}
            if node.id in seen:
                return set()
            found = set()
            if node.id in self.params:
                self.pointers.add(node.id)
                found.add(node.id)
                return found
            for value in self.defined.get(node.id, []):
                found |= self.address(value, seen | {node.id})
            return found
        if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Sub)):
            base, offset = node.left, node.right
            if not self.may_be_pointer(base) and self.may_be_pointer(offset):
                base, offset = offset, base
            self.index(offset)
            return self.address(base, seen)
        if isinstance(node, ast.Call):
            name = getattr(node.func, "attr", getattr(node.func, "id", ""))
            if name in ("advance", "multiple_of", "max_contiguous", "make_block_ptr", "make_tensor_descriptor", "cast",
                        "broadcast_to", "where") and node.args:
                return self.address(node.args[1 if name == "where" and len(node.args) > 1 else 0], seen)
            if name == "to" and isinstance(node.func, ast.Attribute):
                return self.address(node.func.value, seen)
            for argument in node.args:
                if isinstance(argument, ast.Name) and self.may_be_pointer(argument) and POINTER_NAMES.search(argument.id):
                    return self.address(argument, seen)
            return set()
        if isinstance(node, ast.IfExp):
            return self.address(node.body, seen) | self.address(node.orelse, seen)
        if isinstance(node, ast.Subscript):
            return self.address(node.value, seen)
        return set()

    def may_be_pointer(self, node, seen=frozenset()):
        if isinstance(node, ast.Name):
            if node.id in self.params:
                return not re.search(r"(stride|offs|^N$|^M$|^K$|num|size)", node.id) or bool(POINTER_NAMES.search(node.id))
            if node.id in seen:
                return False
            return any(self.may_be_pointer(v, seen | {node.id}) for v in self.defined.get(node.id, []))
        if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Sub)):
            return self.may_be_pointer(node.left, seen) or self.may_be_pointer(node.right, seen)
        if isinstance(node, ast.Subscript):
            return self.may_be_pointer(node.value, seen)
        if isinstance(node, ast.IfExp):
            return self.may_be_pointer(node.body, seen)
        if isinstance(node, ast.Call):
            name = getattr(node.func, "attr", getattr(node.func, "id", ""))
            if name == "to":
                return self.may_be_pointer(node.func.value, seen) if isinstance(node.func, ast.Attribute) else False
            return name in ("advance", "make_block_ptr", "multiple_of", "cast") and bool(node.args) \
                and self.may_be_pointer(node.args[0], seen)
        return False

    def index(self, node, seen=frozenset()):
        for part in ast.walk(node):
            if isinstance(part, ast.Name):
                if part.id in self.params and part.id not in self.pointers:
                    self.indices.add(part.id)
                elif part.id not in seen:
                    for value in self.defined.get(part.id, []):
                        self.index(value, seen | {part.id})
            elif isinstance(part, ast.Call) and getattr(part.func, "attr", "") == "load" and part.args:
                self.int_pointers |= self.address(part.args[0])
                return

    def power(self, node):
        for part in ast.walk(node) if node is not None else []:
            if isinstance(part, ast.Name):
                self.powers.add(part.id)
                for value in self.defined.get(part.id, [])[:1]:
                    for inner in ast.walk(value):
                        if isinstance(inner, ast.Name):
                            self.powers.add(inner.id)


def is_constexpr(argument):
    return argument.annotation is not None and "constexpr" in ast.unparse(argument.annotation)


def guesses(excerpt):
    """Guesses for a kernel, each a dict from parameter to `Arg`; likely ones first."""
    uses = Uses(excerpt.name, excerpt.functions)
    signature = uses.node.args
    arguments = [*signature.posonlyargs, *signature.args]
    defaults = dict(zip([a.arg for a in arguments][len(arguments) - len(signature.defaults):], signature.defaults))
    defaults |= {a.arg: d for a, d in zip(signature.kwonlyargs, signature.kw_defaults) if d is not None}
    arguments += signature.kwonlyargs
    seen = []
    for style in styles():
        guess = {a.arg: argument(a, defaults.get(a.arg), uses, style) for a in arguments}
        if guess not in seen:
            seen.append(guess)
            yield guess


def styles():
    """What the guesses of a kernel differ in: floats, integers, block sizes, flags, missing pointers."""
    first = dict(float="float32", int="int32", block=32, flag="True", missing=False, tail=0, numbers=False)
    yield first
    changes = [dict(flag="False"), dict(flag="False", missing=True), dict(float="float16"), dict(block=16),
               dict(int="int64"), dict(float="float16", flag="False"), dict(block=64, flag="False"),
               dict(block=128), dict(float="bfloat16", block=64), dict(float="bfloat16", flag="False", int="int64"),
               dict(missing=True), dict(block=16, flag="False"), dict(tail=1), dict(tail=1, flag="False"),
               dict(float="float16", block=64, tail=1), dict(numbers=True), dict(numbers=True, flag="False"),
               dict(float="uint8"), dict(float="int32"), dict(float="int32", flag="False"), dict(float="int8"),
               dict(float="int64", int="int64"), dict(block=1), dict(block=256, flag="False"), dict(block=8),
               dict(block=2, flag="False"), dict(float="int1")]
    for change in changes:
        yield {**first, **change}


def argument(node, default, uses, style):
    name = node.arg
    if is_constexpr(node):
        return Arg("const", constant(name, default, uses, style))
    if name in uses.descriptors:
        return Arg("descriptor", style["float"], uses.descriptors[name])
    if name in uses.pointers or POINTER_NAMES.search(name) and name not in uses.indices:
        if style["missing"] and (default is not None or name in uses.flags or uses.tests.get(name, [""])[-1] == "None"):
            return Arg("const", "None")
        if name in uses.int_pointers or (INT_POINTERS.search(name) and style["float"] in ("float32", "float16", "bfloat16")):
            return Arg("pointer", style["int"])
        if MASK_POINTERS.search(name):
            return Arg("pointer", "int1" if style["flag"] == "True" else "int8")
        if BYTE_POINTERS.search(name):
            return Arg("pointer", "uint8")
        return Arg("pointer", style["float"])
    if isinstance(default, ast.Constant) and isinstance(default.value, (float, bool, str, type(None))):
        if isinstance(default.value, float):
            return Arg("float", repr(default.value))
        return Arg("const", repr(default.value))
    if name not in uses.indices and FLOAT_NAMES.search(name) and not NOT_FLOAT.search(name) or style["numbers"] and \
            name not in uses.indices:
        return Arg("float", "0.5")
    return Arg("int", "int32")


def constant(name, default, uses, style):
    tests = [t for t in uses.tests.get(name, [])]
    if style["tail"] and tests:
        return tests[-1]
    if name in uses.powers and not isinstance(default, ast.Constant):
        return str(style["block"])
    if name in uses.types or DTYPE_NAMES.search(name):
        known = [t for t in tests if t.startswith("tl.")]
        elem = style["float"] if "int" not in style["float"] else "float32"
        return known[0] if known else f"tl.{elem}"
    texts = [t for t in tests if t.startswith(("'", '"'))]
    if texts:
        return texts[0]
    if isinstance(default, ast.Constant) and style["flag"] == "True":
        return repr(default.value)
    if name in uses.flags or BOOL_NAMES.search(name) and name not in uses.indices or "True" in tests or "False" in tests:
        return style["flag"]
    if "None" in tests and style["missing"]:
        return "None"
    if FLOAT_NAMES.search(name) and not NOT_FLOAT.search(name) and name not in uses.indices:
        return "0.5"
    if isinstance(default, ast.Constant):
        return repr(default.value)
    if re.search(r"(stage|unroll|NUM_STAGES)", name, re.I):
        return "2"
    if re.search(r"(warps|GROUP_SIZE_M|GROUP_M|KERNEL|WIDTH|NUM_SPLIT|SPLIT)", name):
        return "4"
    return str(style["block"])
