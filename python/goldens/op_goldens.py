"""Goldens of single operations: inputs, parameters and what PyTorch's CPU kernels make of them.

The names of operations and parameters are those that `crates/passnet-engine/tests/ops.rs` reads.
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from common import tensor_json, write

HALVES = [torch.float16, torch.bfloat16]
FLOATS = [torch.float32, torch.float64, *HALVES]


class Cases:
    """Collects cases of one file."""

    def __init__(self, seed: int) -> None:
        self.cases: list[dict] = []
        self.generator = torch.Generator().manual_seed(seed)

    def randn(self, *shape: int, dtype=torch.float32) -> torch.Tensor:
        return torch.randn(shape, generator=self.generator).to(dtype)

    def randint(self, low: int, high: int, *shape: int, dtype=torch.int64) -> torch.Tensor:
        return torch.randint(low, high, shape, generator=self.generator).to(dtype)

    def add(self, op: str, function, *inputs: torch.Tensor, **params) -> None:
        given = [tensor_json(t) for t in inputs]
        outputs = function(*inputs)
        if isinstance(outputs, torch.Tensor):
            outputs = [outputs]
        self.cases.append(
            {"op": op, "params": params, "inputs": given, "outputs": [tensor_json(o) for o in outputs]}
        )


SPECIALS = [0.0, -0.0, 1.0, -1.0, 0.5, 3.0, -3.0, 20.0, -20.0, 90.0, -90.0, 1e-6, math.inf, -math.inf, math.nan]

UNARY = {
    "abs": torch.abs, "neg": torch.neg, "sign": torch.sign, "floor": torch.floor, "ceil": torch.ceil,
    "trunc": torch.trunc, "round": torch.round, "square": torch.square, "sqrt": torch.sqrt, "rsqrt": torch.rsqrt,
    "reciprocal": torch.reciprocal, "exp": torch.exp, "exp2": torch.exp2, "expm1": torch.expm1, "log": torch.log,
    "log2": torch.log2, "log10": torch.log10, "log1p": torch.log1p, "sin": torch.sin, "cos": torch.cos,
    "tan": torch.tan, "atan": torch.atan, "sinh": torch.sinh, "cosh": torch.cosh, "tanh": torch.tanh,
    "sigmoid": torch.sigmoid, "logsigmoid": F.logsigmoid, "erf": torch.erf, "erfc": torch.erfc, "relu": torch.relu,
    "relu6": F.relu6, "gelu": F.gelu, "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"), "silu": F.silu,
    "mish": F.mish, "softsign": F.softsign, "hardswish": F.hardswish, "hardsigmoid": F.hardsigmoid,
    "hardtanh": lambda x: F.hardtanh(x, -0.5, 2.0), "leaky_relu": lambda x: F.leaky_relu(x, 0.1),
    "elu": lambda x: F.elu(x, 1.3), "selu": F.selu, "softplus": lambda x: F.softplus(x, 2.0, 15.0),
    "hardshrink": F.hardshrink, "softshrink": F.softshrink, "pow3": lambda x: x**3, "pow_half": lambda x: x**0.5,
    "pow_1.7": lambda x: x**1.7,
}  # fmt: skip


def pointwise() -> Cases:
    c = Cases(1)
    for name, function in UNARY.items():
        x = torch.cat([torch.tensor(SPECIALS), c.randn(17) * 3])
        if name == "gelu":
            # PyTorch 2.11's float32 kernel answers NaN for +inf; its float64 kernel, and ours, say inf.
            x = x[x != math.inf]
        for dtype in FLOATS:
            c.add(name, function, x.to(dtype))
    for name in ["abs", "neg", "sign", "square", "sin", "sigmoid", "relu"]:
        c.add(name, UNARY[name], c.randint(-5, 6, 9))
    binary = {
        "add": torch.add, "sub": torch.sub, "mul": torch.mul, "div": torch.div, "pow": torch.pow,
        "maximum": torch.maximum, "minimum": torch.minimum, "fmod": torch.fmod, "remainder": torch.remainder,
        "floor_divide": lambda a, b: torch.div(a, b, rounding_mode="floor"),
        "trunc_divide": lambda a, b: torch.div(a, b, rounding_mode="trunc"),
        "eq": torch.eq, "ne": torch.ne, "lt": torch.lt, "le": torch.le, "gt": torch.gt, "ge": torch.ge,
    }  # fmt: skip
    for name, function in binary.items():
        for dtype in FLOATS:
            c.add(name, function, c.randn(3, 5, dtype=dtype), c.randn(5, dtype=dtype))
            c.add(name, function, c.randn(2, 3, dtype=dtype), torch.tensor(0.3))
        if name != "pow":
            c.add(name, function, c.randint(-9, 10, 12), c.randint(1, 4, 12))
            c.add(name, function, c.randint(-9, 10, 12), c.randn(12) + 3)
            c.add(name, function, c.randint(0, 200, 6, dtype=torch.uint8), c.randint(1, 5, 6, dtype=torch.int32))
    c.add("pow", torch.pow, c.randint(-4, 5, 10), c.randint(0, 4, 10))
    for name, function in {"mul": torch.mul, "add": torch.add, "gt": torch.gt, "sub": torch.sub, "div": torch.div}.items():
        for dtype in [torch.float32, *HALVES, torch.int64]:
            x = c.randn(40, dtype=torch.float32).mul(5).to(dtype)
            c.add(f"{name}_number", lambda a, f=function: f(a, 0.3), x, number=0.3)
            c.add(f"{name}_number", lambda a, f=function: f(a, 3), x, number=3)
    c.add("add_alpha", lambda a, b: torch.add(a, b, alpha=2.5), c.randn(33), c.randn(33), alpha=2.5)
    # Layouts: results keep the memory order of their operands.
    x = c.randn(2, 3, 4, 5)
    c.add("add", torch.add, x.permute(0, 2, 3, 1), c.randn(3))
    c.add("relu", torch.relu, x.permute(2, 0, 3, 1))
    c.add("mul", torch.mul, x.transpose(1, 3), x.transpose(1, 3))
    c.add("mul", torch.mul, x.to(memory_format=torch.channels_last), c.randn(1, 3, 1, 1))
    c.add("add", torch.add, x[:, ::2, :, 1:4], c.randn(2, 1, 4, 3))
    c.add("exp", torch.exp, x.expand(2, 3, 4, 5)[:, :, None, 1].expand(2, 3, 6, 5))
    mask = c.randn(3, 7) > 0
    for dtype in FLOATS:
        c.add("where", torch.where, mask, c.randn(3, 7, dtype=dtype), c.randn(7, dtype=dtype))
        c.add("masked_fill", lambda a, m: a.masked_fill(m, -1.5), c.randn(3, 7, dtype=dtype), mask, number=-1.5)
        c.add("clamp", lambda a: torch.clamp(a, -0.4, 0.7), c.randn(19, dtype=dtype), min=-0.4, max=0.7)
        c.add("addcmul", lambda a, b, d: torch.addcmul(a, b, d, value=0.5), c.randn(9, dtype=dtype), c.randn(9, dtype=dtype), c.randn(9, dtype=dtype), number=0.5)
        c.add("lerp", lambda a, b: torch.lerp(a, b, 0.3), c.randn(9, dtype=dtype), c.randn(9, dtype=dtype), number=0.3)
    c.add("where", torch.where, mask, c.randint(0, 9, 3, 7), c.randn(7))
    c.add("logical_and", torch.logical_and, mask, c.randint(0, 2, 3, 7))
    c.add("bitwise_xor", torch.bitwise_xor, c.randint(0, 99, 8), c.randint(0, 99, 8))
    c.add("bitwise_not", torch.bitwise_not, mask)
    c.add("bitwise_not", torch.bitwise_not, c.randint(-9, 9, 8, dtype=torch.int32))
    special = torch.tensor(SPECIALS)
    for name, function in {"isnan": torch.isnan, "isinf": torch.isinf, "isfinite": torch.isfinite, "nan_to_num": torch.nan_to_num}.items():
        c.add(name, function, special)
    for source in [torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int64, torch.int32, torch.uint8, torch.bool]:
        for target in [torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int64, torch.int32, torch.int8, torch.bool]:
            c.add("to", lambda x, t=target: x.to(t), (c.randn(3, 4) * 30).abs().to(source).t(), dtype=str(target))
    return c


def reductions() -> Cases:
    c = Cases(2)
    over = {"sum": torch.sum, "mean": torch.mean, "amax": torch.amax, "amin": torch.amin, "var": torch.var, "std": torch.std}
    for name, function in over.items():
        for dtype in FLOATS:
            for dim, keep in [([0], False), ([1], True), ([2], False), ([0, 2], False), ([0, 1, 2], True)]:
                x = c.randn(4, 3, 9, dtype=dtype)
                c.add(name, lambda t, f=function, d=dim, k=keep: f(t, dim=d, keepdim=k), x, dim=dim, keepdim=keep)
            c.add(name, lambda t, f=function: f(t, dim=[-1]), c.randn(3, 5, 8, dtype=dtype).transpose(0, 2), dim=[-1], keepdim=False)
    c.add("sum", lambda t: t.sum(dim=[1]), c.randint(-9, 9, 3, 4, dtype=torch.int32), dim=[1], keepdim=False)
    c.add("sum", lambda t: t.sum(dim=[0]), c.randn(3, 4) > 0, dim=[0], keepdim=False)
    c.add("sum", lambda t: t.sum(dim=[0]), torch.zeros(0, 3), dim=[0], keepdim=False)
    c.add("sum", lambda t: t.sum(dim=[0]), torch.tensor(2.5), dim=[0], keepdim=False)
    c.add("prod", lambda t: t.prod(dim=1), c.randn(3, 5), dim=1)
    c.add("prod", lambda t: t.prod(dim=1), c.randint(-3, 4, 3, 5), dim=1)
    for order in [1.0, 2.0, 3.0, math.inf, 0.0]:
        c.add("vector_norm", lambda t, p=order: torch.linalg.vector_norm(t, p, dim=1), c.randn(3, 7), order=str(order))
    x = c.randn(4, 7)
    x[1, 3] = math.nan
    x[2, 2] = x[2, 5] = 9.0
    for name, function in {"max": torch.max, "min": torch.min}.items():
        c.add(name, lambda t, f=function: f(t, dim=1), x, dim=1)
        c.add(name, lambda t, f=function: f(t, dim=0, keepdim=False), c.randint(0, 4, 5, 3), dim=0)
    c.add("argmax", lambda t: t.argmax(dim=1), x, dim=1)
    c.add("argmin", lambda t: t.argmin(), c.randn(3, 4), dim=None)
    c.add("all", lambda t: t.all(dim=1), c.randint(0, 3, 3, 2), dim=[1])
    c.add("any", lambda t: t.any(dim=1), c.randint(0, 2, 3, 2, dtype=torch.uint8), dim=[1])
    for dtype in FLOATS:
        for dim in [0, 1, -1]:
            c.add("softmax", lambda t, d=dim: torch.softmax(t, d), c.randn(3, 4, 19, dtype=dtype) * 3, dim=dim)
            c.add("log_softmax", lambda t, d=dim: torch.log_softmax(t, d), c.randn(3, 4, 7, dtype=dtype) * 3, dim=dim)
        c.add("logsumexp", lambda t: torch.logsumexp(t, [1]), c.randn(3, 5, dtype=dtype), dim=[1])
        c.add("cumsum", lambda t: torch.cumsum(t, 1), c.randn(3, 9, dtype=dtype), dim=1)
    masked = torch.full((2, 4), -math.inf)
    masked[0, 1] = 1.0
    c.add("softmax", lambda t: torch.softmax(t, -1), masked, dim=-1)
    c.add("cumsum", lambda t: torch.cumsum(t, 0), c.randint(0, 9, 4, 2, dtype=torch.int32), dim=0)
    c.add("cumsum", lambda t: torch.cumsum(t, 0), c.randn(6) > 0, dim=0)
    c.add("cumprod", lambda t: torch.cumprod(t, 0), c.randn(6), dim=0)
    c.add("sort", lambda t: torch.sort(t, dim=1, stable=True), x, dim=1, descending=False)
    c.add("sort", lambda t: torch.sort(t, dim=0, descending=True, stable=True), c.randint(0, 5, 9, 2), dim=0, descending=True)
    c.add("topk", lambda t: torch.topk(t, 3, dim=1), c.randn(4, 20), k=3, dim=1, largest=True)
    c.add("topk", lambda t: torch.topk(t, 2, dim=0, largest=False), c.randn(9, 2, dtype=torch.float16), k=2, dim=0, largest=False)
    return c


def products() -> Cases:
    c = Cases(3)
    for dtype in FLOATS:
        for a, b in [((3, 4), (4, 5)), ((4,), (4,)), ((3, 4), (4,)), ((4,), (4, 5)), ((2, 3, 4), (4, 5)), ((2, 1, 3, 4), (5, 4, 2)), ((4,), (2, 4, 3)), ((0, 4), (4, 3)), ((3, 0), (0, 2))]:
            c.add("matmul", torch.matmul, c.randn(*a, dtype=dtype), c.randn(*b, dtype=dtype))
        c.add("matmul", torch.matmul, c.randn(5, 3, 4, dtype=dtype), c.randn(5, 6, 4, dtype=dtype).transpose(1, 2))
        c.add("linear", F.linear, c.randn(2, 3, 8, dtype=dtype), c.randn(5, 8, dtype=dtype), c.randn(5, dtype=dtype))
        c.add("linear", F.linear, c.randn(8, dtype=dtype), c.randn(5, 8, dtype=dtype))
        c.add("addmm", lambda i, a, b: torch.addmm(i, a, b, beta=0.5, alpha=2), c.randn(5, dtype=dtype), c.randn(3, 4, dtype=dtype), c.randn(4, 5, dtype=dtype), beta=0.5, alpha=2)
        c.add("baddbmm", lambda i, a, b: torch.baddbmm(i, a, b), c.randn(2, 3, 5, dtype=dtype), c.randn(2, 3, 4, dtype=dtype), c.randn(2, 4, 5, dtype=dtype), beta=1, alpha=1)
    c.add("matmul", torch.matmul, c.randint(-5, 5, 3, 4), c.randint(-5, 5, 4, 2))
    c.add("matmul", torch.matmul, c.randn(40, 70), c.randn(70, 30))
    c.add("outer", torch.outer, c.randn(3), c.randn(4))
    for equation, shapes in [
        ("bhid,bhjd->bhij", [(2, 3, 4, 5), (2, 3, 6, 5)]), ("ij,jk", [(2, 3), (3, 4)]), ("i,j->ij", [(3,), (4,)]),
        ("...ij,...jk->...ik", [(2, 3, 4), (2, 4, 5)]), ("bnhd,hde->bnhe", [(2, 3, 4, 5), (4, 5, 6)]), ("ii->i", [(4, 4)]),
        ("ij->ji", [(2, 3)]), ("ijk->k", [(2, 3, 4)]), ("bid,bjd,bk->ijk", [(2, 3, 4), (2, 5, 4), (2, 6)]),
        ("b i d, b j d -> b i j", [(2, 3, 4), (2, 5, 4)]), ("bcxd,bcyd->bcxy", [(1, 2, 3, 4), (1, 2, 5, 4)]),
    ]:  # fmt: skip
        c.add("einsum", lambda *t, e=equation: torch.einsum(e, *t), *[c.randn(*s) for s in shapes], equation=equation)
    for dtype in FLOATS:
        q, k, v = c.randn(2, 3, 7, 8, dtype=dtype), c.randn(2, 3, 9, 8, dtype=dtype), c.randn(2, 3, 9, 6, dtype=dtype)
        v8 = c.randn(2, 3, 9, 8, dtype=dtype)
        c.add("attention", lambda q, k, v: F.scaled_dot_product_attention(q, k, v), q, k, v8, causal=False)
        c.add("attention", lambda q, k, v: F.scaled_dot_product_attention(q, k, v), q, k, v, causal=False, values_only=True)
        c.add("attention", lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True), q, k, v8, causal=True)
        mask = c.randn(2, 1, 7, 9) > 0
        mask[0, 0, 2] = False
        c.add("attention", lambda q, k, v, m: F.scaled_dot_product_attention(q, k, v, m), q, k, v8, mask, causal=False)
        c.add("attention", lambda q, k, v, m: F.scaled_dot_product_attention(q, k, v, m, scale=0.3), q, k, v8, c.randn(7, 9, dtype=dtype), causal=False, scale=0.3)
    e, h = 8, 2
    w, b = c.randn(3 * e, e) * 0.3, c.randn(3 * e)
    ow, ob = c.randn(e, e) * 0.3, c.randn(e)
    pad = torch.tensor([[False, False, True], [False, True, True]])
    for need in [True, False]:
        def mha(q, k, w, b, ow, ob, pad, need=need):
            out, weights = F.multi_head_attention_forward(q, k, k, e, h, w, b, None, None, False, 0.0, ow, ob, training=False, key_padding_mask=pad, need_weights=need)
            return [out] + ([weights] if need else [])
        c.add("multi_head", mha, c.randn(4, 2, e), c.randn(3, 2, e), w, b, ow, ob, pad, heads=h, need_weights=need)
    return c


def convolutions() -> Cases:
    c = Cases(4)
    def conv(op, function, x, w, b, **p):
        c.add(op, lambda x, w, *b: function(x, w, b[0] if b else None, **p), x, w, *([b] if b is not None else []), **p)
    for dtype in FLOATS:
        conv("conv", F.conv2d, c.randn(2, 3, 7, 8, dtype=dtype), c.randn(4, 3, 3, 3, dtype=dtype), c.randn(4, dtype=dtype), stride=[1, 1], padding=[1, 1], dilation=[1, 1], groups=1)
    conv("conv", F.conv2d, c.randn(1, 4, 9, 9), c.randn(6, 2, 3, 2), None, stride=[2, 1], padding=[1, 0], dilation=[2, 1], groups=2)
    conv("conv", F.conv2d, c.randn(2, 4, 5, 5), c.randn(4, 1, 3, 3), c.randn(4), stride=[1, 1], padding=[1, 1], dilation=[1, 1], groups=4)
    conv("conv", F.conv2d, c.randn(1, 4, 8, 9), c.randn(8, 1, 5, 5), c.randn(8), stride=[2, 2], padding=[2, 2], dilation=[1, 1], groups=4)
    conv("conv", F.conv2d, c.randn(1, 3, 10, 10), c.randn(3, 1, 3, 3), None, stride=[3, 3], padding=[0, 0], dilation=[2, 2], groups=3)
    conv("conv", F.conv2d, c.randn(2, 6, 4, 4), c.randn(5, 6, 1, 1), c.randn(5), stride=[1, 1], padding=[0, 0], dilation=[1, 1], groups=1)
    conv("conv", F.conv2d, c.randn(2, 6, 4, 4).to(memory_format=torch.channels_last), c.randn(5, 6, 3, 3), c.randn(5), stride=[1, 1], padding=[1, 1], dilation=[1, 1], groups=1)
    conv("conv", F.conv2d, c.randn(3, 6, 6), c.randn(2, 3, 3, 3), None, stride=[1, 1], padding=[0, 0], dilation=[1, 1], groups=1)
    conv("conv", F.conv2d, c.randn(1, 3, 6, 7), c.randn(2, 3, 4, 3), None, stride=[1, 1], padding="same", dilation=[1, 1], groups=1)
    conv("conv", F.conv1d, c.randn(2, 3, 11), c.randn(4, 3, 5), c.randn(4), stride=[2], padding=[2], dilation=[1], groups=1)
    conv("conv", F.conv1d, c.randn(2, 4, 9), c.randn(4, 1, 3), c.randn(4), stride=[1], padding=[1], dilation=[1], groups=4)
    conv("conv", F.conv3d, c.randn(1, 2, 4, 5, 6), c.randn(3, 2, 2, 3, 3), c.randn(3), stride=[1, 2, 1], padding=[0, 1, 1], dilation=[1, 1, 1], groups=1)
    conv("conv", F.conv2d, c.randn(1, 16, 12, 12), c.randn(3, 16, 3, 3), None, stride=[1, 1], padding=[1, 1], dilation=[1, 1], groups=1)
    transposed = dict(stride=[2, 2], padding=[1, 1], output_padding=[1, 0], groups=1, dilation=[1, 1])
    conv("conv_transpose", F.conv_transpose2d, c.randn(2, 3, 4, 5), c.randn(3, 2, 3, 3), c.randn(2), **transposed)
    conv("conv_transpose", F.conv_transpose2d, c.randn(1, 4, 4, 4), c.randn(4, 3, 2, 2), None, **(transposed | dict(groups=2, padding=[0, 0])))
    conv("conv_transpose", F.conv_transpose1d, c.randn(1, 3, 6), c.randn(3, 2, 4), c.randn(2), stride=[2], padding=[1], output_padding=[0], groups=1, dilation=[2])
    for dtype in HALVES:
        conv("conv_transpose", F.conv_transpose2d, c.randn(1, 3, 3, 3, dtype=dtype), c.randn(3, 2, 2, 2, dtype=dtype), c.randn(2, dtype=dtype), stride=[2, 2], padding=[0, 0], output_padding=[0, 0], groups=1, dilation=[1, 1])
    def pool(op, function, x, **p):
        c.add(op, lambda x: function(x, **p), x, **p)
    for dtype in FLOATS:
        x = c.randn(2, 3, 7, 8, dtype=dtype)
        pool("max_pool", F.max_pool2d, x, kernel_size=[3, 3], stride=[2, 2], padding=[1, 1], dilation=[1, 1], ceil_mode=False)
        pool("avg_pool", F.avg_pool2d, x, kernel_size=[3, 2], stride=[2, 2], padding=[1, 1], ceil_mode=True, count_include_pad=False)
        pool("adaptive_avg_pool", F.adaptive_avg_pool2d, x, output_size=[3, 5])
        pool("adaptive_avg_pool", F.adaptive_avg_pool2d, x, output_size=[1, 1])
    x = c.randn(2, 3, 9, 10)
    pool("max_pool", F.max_pool2d, x, kernel_size=[2, 3], stride=[2, 2], padding=[0, 1], dilation=[2, 1], ceil_mode=True)
    pool("max_pool", F.max_pool2d, x.to(memory_format=torch.channels_last), kernel_size=[3, 3], stride=[1, 1], padding=[1, 1], dilation=[1, 1], ceil_mode=False)
    pool("max_pool_indices", lambda x, **p: F.max_pool2d(x, return_indices=True, **p), x, kernel_size=[3, 3], stride=[2, 2], padding=[1, 1], dilation=[1, 1], ceil_mode=False)
    pool("max_pool", F.max_pool1d, c.randn(2, 3, 11), kernel_size=[3], stride=[2], padding=[1], dilation=[1], ceil_mode=True)
    pool("max_pool", F.max_pool3d, c.randn(1, 2, 4, 5, 6), kernel_size=[2, 2, 2], stride=[2, 2, 2], padding=[0, 0, 0], dilation=[1, 1, 1], ceil_mode=False)
    pool("avg_pool", F.avg_pool2d, x, kernel_size=[3, 3], stride=[2, 2], padding=[1, 1], ceil_mode=True, count_include_pad=True)
    pool("avg_pool", F.avg_pool1d, c.randn(2, 3, 11), kernel_size=[4], stride=[3], padding=[2], ceil_mode=False, count_include_pad=True)
    pool("adaptive_avg_pool", F.adaptive_avg_pool1d, c.randn(2, 3, 11), output_size=[4])
    pool("adaptive_avg_pool", F.adaptive_avg_pool3d, c.randn(1, 2, 4, 5, 6), output_size=[2, 3, 2])
    pool("adaptive_max_pool", lambda x, **p: F.adaptive_max_pool2d(x, return_indices=True, **p), x, output_size=[4, 3])
    patches = dict(kernel_size=[2, 3], dilation=[1, 2], padding=[1, 0], stride=[2, 1])
    c.add("unfold", lambda x: F.unfold(x, **patches), c.randn(2, 3, 5, 8), **patches)
    c.add("fold", lambda x: F.fold(x, [5, 8], **patches), c.randn(2, 18, 12), output_size=[5, 8], **patches)
    return c


def norms() -> Cases:
    c = Cases(5)
    for dtype in FLOATS:
        x = c.randn(2, 4, 3, 5, dtype=dtype)
        stats = [c.randn(4, dtype=dtype), c.randn(4).abs().to(dtype), c.randn(4, dtype=dtype), c.randn(4, dtype=dtype)]
        c.add("batch_norm", lambda x, m, v, w, b: F.batch_norm(x, m, v, w, b, False, 0.1, 1e-5), x, *stats)
        c.add("layer_norm", lambda x, w, b: F.layer_norm(x, [5], w, b, 1e-5), x, c.randn(5, dtype=dtype), c.randn(5, dtype=dtype), shape=[5], eps=1e-5)
        c.add("layer_norm", lambda x: F.layer_norm(x, [3, 5], None, None, 1e-6), x, shape=[3, 5], eps=1e-6)
        c.add("group_norm", lambda x, w, b: F.group_norm(x, 2, w, b, 1e-5), x, c.randn(4, dtype=dtype), c.randn(4, dtype=dtype), groups=2)
        c.add("rms_norm", lambda x, w: F.rms_norm(x, [5], w, None), x, c.randn(5, dtype=dtype), shape=[5])
        c.add("rms_norm", lambda x, w: F.rms_norm(x, [5], w, 1e-6), x, c.randn(5, dtype=dtype), shape=[5], eps=1e-6)
        c.add("normalize", lambda x: F.normalize(x, dim=1), x, dim=1)
    x = c.randn(2, 4, 3, 5)
    c.add("batch_norm", lambda x, m, v, w, b: F.batch_norm(x, m, v, w, b, False, 0.1, 1e-5), x.to(memory_format=torch.channels_last), c.randn(4), c.randn(4).abs(), c.randn(4), c.randn(4))
    c.add("batch_norm_training", lambda x, m, v, w, b: [F.batch_norm(x, m, v, w, b, True, 0.3, 1e-5), m, v], x, c.randn(4), c.randn(4).abs(), c.randn(4), c.randn(4))
    c.add("instance_norm", lambda x, w, b: F.instance_norm(x, None, None, w, b, True, 0.1, 1e-5), x, c.randn(4), c.randn(4))
    c.add("layer_norm", lambda x, w, b: F.layer_norm(x, [770], w, b, 1e-5), c.randn(2, 770) * 3 + 5, c.randn(770), c.randn(770), shape=[770], eps=1e-5)
    c.add("weight_norm", lambda v, g: torch._weight_norm(v, g, 0), c.randn(4, 3, 2), c.randn(4, 1, 1), dim=0)
    return c


def movement() -> Cases:
    c = Cases(6)
    for dim in [0, 1, -1]:
        shapes = [[2, 3, 4], [2, 3, 4]]
        shapes[1][dim] = 2
        c.add("cat", lambda *t, d=dim: torch.cat(t, d), *[c.randn(*s) for s in shapes], dim=dim)
        c.add("stack", lambda *t, d=dim: torch.stack(t, d), c.randn(2, 3), c.randn(3, 2).t(), dim=dim)
    c.add("cat", lambda *t: torch.cat(t, 0), c.randint(0, 9, 3), c.randn(2), torch.zeros(0), dim=0)
    c.add("cat", lambda *t: torch.cat(t, 1), *[c.randn(1, 2, 3, 3).to(memory_format=torch.channels_last) for _ in range(2)], dim=1)
    x = c.randn(2, 3, 4, 5)
    for amounts, mode in [([1, 2], "constant"), ([1, 2, 0, 1, 2, 0], "constant"), ([-1, 2, 1, -2], "constant"), ([1, 2, 2, 1], "reflect"), ([1, 2, 2, 1], "replicate"), ([1, 2, 2, 1], "circular")]:
        c.add("pad", lambda t, a=amounts, m=mode: F.pad(t, a, m), x, amounts=amounts, mode=mode)
    c.add("roll", lambda t: torch.roll(t, [1, -2], [2, 3]), x, shifts=[1, -2], dims=[2, 3])
    c.add("roll", lambda t: torch.roll(t, 3), x, shifts=[3], dims=[])
    c.add("flip", lambda t: torch.flip(t, [1, 3]), x, dims=[1, 3])
    c.add("tril", lambda t: torch.tril(t, -1), x, diagonal=-1)
    c.add("triu", lambda t: torch.triu(t, 2), x, diagonal=2)
    c.add("repeat", lambda t: t.repeat(2, 1, 3), c.randn(2, 3), counts=[2, 1, 3])
    c.add("repeat_interleave", lambda t: t.repeat_interleave(2, dim=1), c.randn(2, 3), count=2, dim=1)
    c.add("one_hot", lambda t: F.one_hot(t, 6), c.randint(0, 6, 2, 3), classes=6)
    c.add("pixel_shuffle", lambda t: F.pixel_shuffle(t, 2), c.randn(1, 8, 3, 2), factor=2)
    c.add("pixel_unshuffle", lambda t: F.pixel_unshuffle(t, 2), c.randn(1, 2, 4, 6), factor=2)
    c.add("index_select", lambda t, i: torch.index_select(t, 2, i), x, c.randint(0, 4, 6), dim=2)
    c.add("gather", lambda t, i: torch.gather(t, 1, i), c.randn(3, 5), c.randint(0, 5, 3, 4), dim=1)
    c.add("gather", lambda t, i: torch.gather(t, 0, i), c.randn(5, 3).t(), c.randint(0, 3, 2, 5), dim=0)
    c.add("embedding", F.embedding, c.randint(0, 7, 2, 3), c.randn(7, 4))
    for op in ["assign", "add", "multiply"]:
        reduce = {} if op == "assign" else {"reduce": op}
        index = torch.stack([torch.randperm(5, generator=c.generator)[:4] for _ in range(3)])
        c.add("scatter", lambda t, i, s, r=reduce: torch.scatter(t, 1, i, s, **r), c.randn(3, 5), index, c.randn(3, 4), dim=1, reduce=op, include_self=True)
    for op, name in [("sum", "add"), ("prod", "multiply"), ("mean", "mean"), ("amax", "maximum"), ("amin", "minimum")]:
        for include in [True, False]:
            c.add("scatter", lambda t, i, s, o=op, n=include: torch.scatter_reduce(t, 0, i, s, o, include_self=n), c.randn(5, 2), c.randint(0, 5, 6, 2), c.randn(6, 2), dim=0, reduce=name, include_self=include)
    mask = c.randn(2, 3) > 0
    c.add("index", lambda t, i: t[i], x, c.randint(-2, 2, 3, 2), axes=[0])
    c.add("index", lambda t, i: t[:, :, i], x, c.randint(-4, 4, 3), axes=[2])
    c.add("index", lambda t, i, j: t[i, :, j], x, c.randint(0, 2, 3), c.randint(0, 4, 3), axes=[0, 2])
    c.add("index", lambda t, i, j: t[:, i, j], x, c.randint(0, 3, 3, 1), c.randint(0, 4, 4), axes=[1, 2])
    c.add("index", lambda t, m: t[m], x, mask, axes=[0])
    c.add("index", lambda t, i: t[i], x.permute(3, 1, 0, 2), c.randint(0, 5, 4), axes=[0])
    for accumulate in [False, True]:
        c.add("index_put", lambda t, i, v, a=accumulate: t.index_put((i,), v, accumulate=a), c.randn(5, 3), torch.tensor([1, 3, 4]) if not accumulate else torch.tensor([1, 3, 1]), c.randn(3, 3), axes=[0], accumulate=accumulate)
    c.add("index_put", lambda t, m, v: t.index_put((m,), v), c.randn(2, 3), mask, torch.tensor(7.0), axes=[0], accumulate=False)
    c.add("nonzero", torch.nonzero, mask)
    c.add("masked_select", torch.masked_select, c.randn(2, 3), mask)
    c.add("index_add", lambda t, i, s: t.index_add(0, i, s, alpha=2), c.randn(4, 3), torch.tensor([0, 2, 0]), c.randn(3, 3), dim=0, alpha=2)
    for start, end, step, dtype in [(0, 10, 1, torch.int64), (2, 9, 3, torch.float32), (1.0, 2.0, 0.1, torch.float32), (5, -1, -2, torch.int64), (0.0, 1.0, 0.07, torch.float64)]:
        c.add("arange", lambda s=start, e=end, b=step, d=dtype: torch.arange(s, e, b, dtype=d), start=start, end=end, step=step, dtype=str(dtype))
    for start, end, steps in [(-1.0, 1.0, 7), (0.0, 0.3, 12), (2.0, 2.0, 1)]:
        c.add("linspace", lambda s=start, e=end, n=steps: torch.linspace(s, e, n), start=start, end=end, steps=steps)
    c.add("eye", lambda: torch.eye(3, 4), rows=3, columns=4)
    return c


def resampling() -> Cases:
    c = Cases(7)
    x = c.randn(1, 2, 5, 6)
    for mode in ["nearest", "nearest-exact", "bilinear", "bicubic"]:
        for size in [[8, 9], [3, 4], [10, 12], [5, 6]]:
            corners = [False, True] if mode.startswith("bi") else [False]
            for align in corners:
                extra = {"align_corners": align} if mode.startswith("bi") else {}
                c.add("interpolate", lambda t, s=size, m=mode, e=extra: F.interpolate(t, size=s, mode=m, **e), x, size=size, mode=mode, align_corners=align, antialias=False)
                if mode.startswith("bi"):
                    c.add("interpolate", lambda t, s=size, m=mode, e=extra: F.interpolate(t, size=s, mode=m, antialias=True, **e), x, size=size, mode=mode, align_corners=align, antialias=True)
        if mode != "nearest-exact":
            c.add("interpolate", lambda t, m=mode: F.interpolate(t, scale_factor=1.7, mode=m), x, size=[8, 10], scales=[1.7, 1.7], mode=mode, align_corners=False, antialias=False)
    for dtype in HALVES:
        c.add("interpolate", lambda t: F.interpolate(t, size=[8, 9], mode="bilinear"), x.to(dtype), size=[8, 9], mode="bilinear", align_corners=False, antialias=False)
    c.add("interpolate", lambda t: F.interpolate(t, size=[8, 9], mode="bilinear"), c.randn(1, 3, 4, 5).to(memory_format=torch.channels_last), size=[8, 9], mode="bilinear", align_corners=False, antialias=False)
    c.add("interpolate", lambda t: F.interpolate(t, size=[9], mode="linear"), c.randn(1, 2, 5), size=[9], mode="linear", align_corners=False, antialias=False)
    c.add("interpolate", lambda t: F.interpolate(t, size=[4, 5, 7], mode="trilinear", align_corners=True), c.randn(1, 1, 2, 3, 4), size=[4, 5, 7], mode="trilinear", align_corners=True, antialias=False)
    c.add("interpolate", lambda t: F.interpolate(t, size=[3, 4], mode="area"), x, size=[3, 4], mode="area", align_corners=False, antialias=False)
    grid = c.randn(1, 4, 5, 2)
    for mode in ["bilinear", "nearest", "bicubic"]:
        for padding in ["zeros", "border", "reflection"]:
            for align in [False, True]:
                c.add("grid_sample", lambda t, g, m=mode, p=padding, a=align: F.grid_sample(t, g, m, p, a), x, grid, mode=mode, padding=padding, align_corners=align)
    c.add("grid_sample", lambda t, g: F.grid_sample(t, g, align_corners=False), c.randn(1, 2, 3, 4, 5), c.randn(1, 2, 2, 2, 3), mode="bilinear", padding="zeros", align_corners=False)
    for n in [8, 12, 7]:
        for norm in ["backward", "ortho"]:
            c.add("rfft", lambda t, m=norm: torch.view_as_real(torch.fft.rfft(t, norm=m)), c.randn(3, n), norm=norm)
            c.add("irfft", lambda t, m=norm: torch.fft.irfft(torch.view_as_complex(t), norm=m), c.randn(3, n, 2), norm=norm)
    c.add("fftn", lambda t: torch.view_as_real(torch.fft.fftn(t, dim=(0, 1))), c.randn(6, 5), dims=[0, 1])
    return c


def main() -> None:
    torch.set_num_threads(1)
    for name, cases in {
        "pointwise": pointwise(), "reductions": reductions(), "products": products(), "convolutions": convolutions(),
        "norms": norms(), "movement": movement(), "resampling": resampling(),
    }.items():  # fmt: skip
        write(f"{name}.json", cases.cases)


if __name__ == "__main__":
    main()
