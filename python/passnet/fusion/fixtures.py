"""Small graphs on which the fusion model is judged, written as graph folders.

`python -m passnet.fusion.fixtures DIR` writes them; `passnet.fusion.kernel_counts` counts their kernels.
One graph for each rule of the model, and resnet18 in our own words for the published ranges.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

HEADER = "import torch\n\n\nclass GraphModule(torch.nn.Module):\n"


@dataclass
class Fixture:
    """Arguments (`name: dtype[shape]`, integers with their range) and the body of `forward`."""

    arguments: dict[str, str]
    body: list[str]
    returns: str


def parameters(names: str, size: int) -> dict[str, str]:
    return dict.fromkeys(names.split(), f"float32[{size}]")


def fixture(arguments: dict[str, str], body: str, returns: str) -> Fixture:
    return Fixture(arguments, [line.strip() for line in body.strip().splitlines()], returns)


FIXTURES: dict[str, Fixture] = {
    "pointwise_chain": fixture(
        {"x": "float32[32, 512]", "w": "float32[512]", "b": "float32[512]"},
        """a = x * w
        c = a + b
        d = torch.nn.functional.gelu(c)
        e = torch.sigmoid(d)
        f = d * e""",
        "f",
    ),
    "siblings": fixture(
        {"x": "float32[64, 256]", "y": "float32[64, 256]", "z": "float32[16, 128]"},
        """a = x + 1
        b = x * y
        c = torch.relu(z)
        d = torch.exp(a)
        e = c * 2
        f = d - b""",
        "a, b, e, f",
    ),
    "softmax": fixture(
        {"scores": "float32[4, 8, 64, 64]", "mask": "float32[4, 1, 64, 64]"},
        """a = scores * 0.125
        b = a + mask
        c = torch.nn.functional.softmax(b, dim=-1)
        d = torch.nn.functional.dropout(c, 0.1, False, False)
        e = d * 2""",
        "e",
    ),
    "layer_norm_mlp": fixture(
        {
            "x": "float32[8, 64, 256]",
            "residual": "float32[8, 64, 256]",
            "g": "float32[256]",
            "b": "float32[256]",
            "w1": "float32[1024, 256]",
            "b1": "float32[1024]",
            "w2": "float32[256, 1024]",
            "b2": "float32[256]",
        },
        """a = x + residual
        n = torch.nn.functional.layer_norm(a, (256,), g, b, 1e-05)
        h = torch._C._nn.linear(n, w1, b1)
        k = torch.nn.functional.gelu(h)
        o = torch._C._nn.linear(k, w2, b2)
        d = torch.nn.functional.dropout(o, 0.1, False, False)
        r = a + d""",
        "r",
    ),
    "rms_norm": fixture(
        {"x": "bfloat16[4, 128, 512]", "g": "bfloat16[512]", "w": "bfloat16[768, 512]"},
        """f = x.to(torch.float32)
        p = f.pow(2)
        m = p.mean(-1, keepdim=True)
        e = m + 1e-06
        r = torch.rsqrt(e)
        n = f * r
        t = n.to(torch.bfloat16)
        o = g * t
        q = torch._C._nn.linear(o, w, None)""",
        "q",
    ),
    "conv_block": fixture(
        {
            "x": "float32[2, 32, 28, 28]",
            "w1": "float32[64, 32, 1, 1]",
            "w2": "float32[64, 64, 3, 3]",
            "c2": "float32[64]",
            **parameters("m1 v1 g1 b1 m2 v2 g2 b2", 64),
        },
        """a = torch.conv2d(x, w1, None, (1, 1), (0, 0), (1, 1), 1)
        n = torch.nn.functional.batch_norm(a, m1, v1, g1, b1, False, 0.1, 1e-05)
        r = torch.nn.functional.relu(n, inplace=True)
        c = torch.conv2d(r, w2, c2, (1, 1), (1, 1), (1, 1), 1)
        d = torch.nn.functional.batch_norm(c, m2, v2, g2, b2, False, 0.1, 1e-05)
        s = d + r
        o = torch.nn.functional.relu(s)
        p = torch.nn.functional.max_pool2d(o, 2, 2)""",
        "p",
    ),
    "squeeze_excite": fixture(
        {
            "x": "float32[2, 48, 14, 14]",
            "dw": "float32[48, 1, 3, 3]",
            **parameters("m v g b", 48),
            "w1": "float32[12, 48, 1, 1]",
            "c1": "float32[12]",
            "w2": "float32[48, 12, 1, 1]",
            "c2": "float32[48]",
        },
        """a = torch.conv2d(x, dw, None, (1, 1), (1, 1), (1, 1), 48)
        n = torch.nn.functional.batch_norm(a, m, v, g, b, False, 0.1, 1e-05)
        h = torch.nn.functional.hardswish(n, True)
        s = h.mean((2, 3), keepdim=True)
        e = torch.conv2d(s, w1, c1, (1, 1), (0, 0), (1, 1), 1)
        r = torch.nn.functional.relu(e, inplace=True)
        t = torch.conv2d(r, w2, c2, (1, 1), (0, 0), (1, 1), 1)
        q = torch.nn.functional.hardsigmoid(t, False)
        o = h * q""",
        "o",
    ),
    "attention": fixture(
        {
            "x": "float32[2, 64, 256]",
            "wq": "float32[256, 256]",
            "bq": "float32[256]",
            "wk": "float32[256, 256]",
            "bk": "float32[256]",
            "wv": "float32[256, 256]",
            "bv": "float32[256]",
            "wo": "float32[256, 256]",
            "bo": "float32[256]",
        },
        """q = torch._C._nn.linear(x, wq, bq)
        q1 = q.view(2, 64, 4, 64)
        q2 = q1.transpose(1, 2)
        k = torch._C._nn.linear(x, wk, bk)
        k1 = k.view(2, 64, 4, 64)
        k2 = k1.transpose(1, 2)
        v = torch._C._nn.linear(x, wv, bv)
        v1 = v.view(2, 64, 4, 64)
        v2 = v1.transpose(1, 2)
        kt = k2.transpose(-1, -2)
        s = torch.matmul(q2, kt)
        d = s / 8.0
        p = torch.nn.functional.softmax(d, dim=-1)
        c = torch.matmul(p, v2)
        t = c.transpose(1, 2)
        u = t.contiguous()
        w = u.view(2, 64, 256)
        o = torch._C._nn.linear(w, wo, bo)""",
        "o",
    ),
    "flash_attention": fixture(
        {
            "x": "bfloat16[2, 64, 256]",
            "w": "bfloat16[768, 256]",
            "b": "bfloat16[768]",
            "wo": "bfloat16[256, 256]",
        },
        """q = torch._C._nn.linear(x, w, b)
        parts = q.chunk(3, dim=-1)
        a = parts[0]
        c = parts[1]
        d = parts[2]
        a1 = a.view(2, 64, 4, 64)
        a2 = a1.transpose(1, 2)
        c1 = c.view(2, 64, 4, 64)
        c2 = c1.transpose(1, 2)
        d1 = d.view(2, 64, 4, 64)
        d2 = d1.transpose(1, 2)
        s = torch._C._nn.scaled_dot_product_attention(a2, c2, d2, dropout_p=0.0, is_causal=True)
        t = s.transpose(1, 2)
        u = t.reshape(2, 64, 256)
        o = torch._C._nn.linear(u, wo, None)""",
        "o",
    ),
    "embedding": fixture(
        {
            "ids": "int64[2, 32] 0 999",
            "types": "int64[2, 32] 0 1",
            "words": "float32[1000, 128]",
            "kinds": "float32[2, 128]",
            "places": "float32[64, 128]",
            "g": "float32[128]",
            "b": "float32[128]",
        },
        """e = torch.nn.functional.embedding(ids, words, 0, None, 2.0, False, False)
        t = torch.nn.functional.embedding(types, kinds, None, None, 2.0, False, False)
        a = e + t
        r = torch.arange(32, device='cuda')
        p = torch.nn.functional.embedding(r, places, None, None, 2.0, False, False)
        c = a + p
        n = torch.nn.functional.layer_norm(c, (128,), g, b, 1e-12)""",
        "n",
    ),
    "rotary": fixture(
        {
            "q": "float32[2, 4, 64, 32]",
            "cos": "float32[1, 64, 32]",
            "sin": "float32[1, 64, 32]",
        },
        """c = cos.unsqueeze(1)
        s = sin.unsqueeze(1)
        a = q * c
        l = q[..., slice(None, 16, None)]
        h = q[..., slice(16, None, None)]
        n = -h
        r = torch.cat((n, l), dim=-1)
        m = r * s
        o = a + m""",
        "o",
    ),
    "pad_upsample": fixture(
        {"x": "float32[2, 16, 14, 14]", "w": "float32[16, 16, 3, 3]", "skip": "float32[2, 16, 28, 28]"},
        """p = torch.nn.functional.pad(x, (1, 1, 1, 1), 'constant', 0.0)
        c = torch.conv2d(p, w, None, (1, 1), (0, 0), (1, 1), 1)
        u = torch.nn.functional.interpolate(c, scale_factor=2, mode='nearest')
        a = u + skip
        s = torch.nn.functional.silu(a)
        t = torch.cat([s, skip], 1)""",
        "t",
    ),
    "mutation": fixture(
        {"x": "float32[16, 64]", "y": "float32[16, 64]", "z": "float32[16, 8]"},
        """a = x + y
        a *= 2
        b = a
        b += y
        c = b
        c[(slice(None, None, None), slice(0, 8, None))] = z
        d = c
        e = torch.nn.functional.relu(d, inplace=True)
        f = e.sum(-1)""",
        "e, f",
    ),
    "views": fixture(
        {"x": "float32[4, 16, 8, 8]"},
        """a = x.flatten(2)
        b = a.transpose(1, 2)
        c = b + 1
        d = c.permute(0, 2, 1)
        e = d.contiguous()
        f = e.view(4, 16, 8, 8)
        g = f.reshape(4, 4, 4, 64)
        h = g.transpose(1, 2)
        i = h.reshape(4, 16, 64)""",
        "i",
    ),
    "reductions": fixture(
        {"x": "float32[32, 1024]"},
        """m = x.mean(-1, keepdim=True)
        c = x - m
        q = c * c
        v = q.mean(-1, keepdim=True)
        s = x.sum()
        k = x.max(dim=-1)
        i = k[1]
        a = torch.argmax(c, dim=0)
        t = v + s""",
        "i, a, t",
    ),
    "group_norm": fixture(
        {
            "x": "float32[2, 32, 16, 16]",
            "g": "float32[32]",
            "b": "float32[32]",
            "w": "float32[32, 32, 3, 3]",
            "c": "float32[32]",
            "t": "float32[2, 32]",
        },
        """n = torch.nn.functional.group_norm(x, 8, g, b, 1e-05)
        s = torch.nn.functional.silu(n)
        h = torch.conv2d(s, w, c, (1, 1), (1, 1), (1, 1), 1)
        u = t[(slice(None, None, None), slice(None, None, None), None, None)]
        o = h + u
        r = o + x""",
        "r",
    ),
    "scan_and_gather": fixture(
        {"ids": "int64[2, 32] 0 99", "x": "float32[2, 32, 16]"},
        """m = ids.ne(1)
        i = m.int()
        c = torch.cumsum(i, dim=1)
        t = c.type_as(i)
        p = t * i
        l = p.long()
        k = x.sum(-1)
        o = torch.topk(k, 4, dim=-1)
        j = o[1]
        u = j.unsqueeze(-1)
        e = u.expand(-1, -1, 16)
        g = x.gather(1, e)""",
        "l, g",
    ),
    "pooling": fixture(
        {"x": "float32[2, 64, 28, 28]", "w": "float32[16, 64]", "b": "float32[16]"},
        """a = torch.nn.functional.avg_pool2d(x, 2, 2)
        r = torch.relu(a)
        m = torch.nn.functional.max_pool2d(r, 3, 2, 1, 1, ceil_mode=False, return_indices=False)
        s = m * 2
        g = torch.nn.functional.adaptive_avg_pool2d(s, (1, 1))
        f = torch.flatten(g, 1)
        o = torch._C._nn.linear(f, w, b)
        p = torch.nn.functional.softmax(o, dim=1)""",
        "p",
    ),
    "mask": fixture(
        {"lengths": "int64[4] 1 64", "x": "float32[4, 64, 32]"},
        """r = torch.arange(64, device='cuda')
        u = r.unsqueeze(0)
        l = lengths.unsqueeze(1)
        m = u < l
        n = ~m
        w = n.unsqueeze(-1)
        f = x.masked_fill(w, 0.0)
        z = torch.zeros((4, 64, 32), dtype=torch.float32, device='cuda')
        o = torch.where(w, z, f)
        s = o.sum(1)""",
        "s",
    ),
    "wide_reduction": fixture(
        {"x": "float32[4, 262144]", "y": "float32[4, 262144]"},
        """d = x - y
        q = d * d
        m = q.mean(-1)
        r = torch.sqrt(m)
        t = r.mean()
        a = q + 1""",
        "t, a",
    ),
    "matmul_epilogue": fixture(
        {"x": "float16[128, 256]", "w": "float16[256, 512]", "b": "float16[512]"},
        """m = torch.matmul(x, w)
        a = m + b
        r = torch.relu(a)
        s = torch.mm(r, r.t())""".replace("r.t()", "w2"),
        "s",
    ),
    "random": fixture(
        {"x": "float32[16, 64]"},
        """d = torch.nn.functional.dropout(x, 0.5, True, False)
        r = torch.rand_like(d)
        a = d + r
        b = a * 2""",
        "b",
    ),
}
FIXTURES["matmul_epilogue"].arguments["w2"] = "float16[512, 64]"


@dataclass
class ResNet18:
    """Builds resnet18 for 224 x 224 images: 69 ops, as an extractor writes them."""

    arguments: dict[str, str] = field(default_factory=lambda: {"x": "float32[1, 3, 224, 224]"})
    body: list[str] = field(default_factory=list)
    count: int = 0

    def conv_norm(self, source: str, channels: tuple[int, int], kernel: int, stride: int) -> str:
        self.count += 1
        at = self.count
        here, out = channels
        padding = kernel // 2
        self.arguments[f"w{at}"] = f"float32[{out}, {here}, {kernel}, {kernel}]"
        self.arguments |= parameters(f"mean{at} var{at} gain{at} bias{at}", out)
        self.body += [
            f"conv{at} = torch.conv2d({source}, w{at}, None, ({stride}, {stride}),"
            f" ({padding}, {padding}), (1, 1), 1)",
            f"norm{at} = torch.nn.functional.batch_norm(conv{at}, mean{at}, var{at}, gain{at},"
            f" bias{at}, False, 0.1, 1e-05)",
        ]
        return f"norm{at}"

    def relu(self, source: str) -> str:
        name = f"relu{source.removeprefix('norm').removeprefix('sum')}"
        name = f"{name}s" if source.startswith("sum") else name
        self.body.append(f"{name} = torch.nn.functional.relu({source}, inplace=True)")
        return name

    def block(self, source: str, channels: tuple[int, int], stride: int) -> str:
        here, out = channels
        first = self.relu(self.conv_norm(source, channels, 3, stride))
        last = self.conv_norm(first, (out, out), 3, 1)
        short = source if here == out else self.conv_norm(source, channels, 1, stride)
        total = f"sum{last.removeprefix('norm')}"
        self.body += [f"{last} += {short}", f"{total} = {last}"]
        return self.relu(total)

    def build(self) -> Fixture:
        value = self.relu(self.conv_norm("x", (3, 64), 7, 2))
        self.body.append(
            f"pool = torch.nn.functional.max_pool2d({value}, 3, 2, 1, 1, ceil_mode=False,"
            " return_indices=False)"
        )
        value, here = "pool", 64
        for out in (64, 128, 256, 512):
            value = self.block(value, (here, out), 1 if here == out else 2)
            value = self.block(value, (out, out), 1)
            here = out
        self.arguments |= {"fc": "float32[1000, 512]", "fc_bias": "float32[1000]"}
        self.body += [
            f"mean = torch.nn.functional.adaptive_avg_pool2d({value}, 1)",
            "flat = mean.flatten(1, -1)",
            "logits = torch._C._nn.linear(flat, fc, fc_bias)",
        ]
        return Fixture(self.arguments, self.body, "logits")


def model_text(graph: Fixture) -> str:
    signature = "".join(f"        {name}: torch.Tensor,\n" for name in graph.arguments)
    body = "".join(f"        {line}\n" for line in graph.body)
    returns = graph.returns + ("," if "," not in graph.returns else "")
    return (
        f"{HEADER}    def forward(\n        self,\n{signature}    ):\n{body}"
        f"        return ({returns})\n"
    )


def meta_text(graph: Fixture) -> str:
    return "\n\n".join(meta_class(name, text) for name, text in graph.arguments.items())


def meta_class(name: str, text: str) -> str:
    dtype, rest = text.split("[")
    shape, limits = rest.split("]")
    lines = [
        f"class Program_weight_tensor_meta_{name}:",
        f'    name = "{name}"',
        f"    shape = [{shape}]",
        f'    dtype = "torch.{dtype}"',
        '    device = "cuda:0"',
    ]
    if limits:
        low, high = limits.split()
        lines += [f"    min_val = {low}", f"    max_val = {high}"]
    else:
        # Variances must be positive; the rest may be anything tame.
        mean = 1.0 if name.startswith(("v", "g")) else 0.0
        lines += [f"    mean = {mean}", "    std = 0.5"]
    return "\n".join([*lines, "    data = None", ""])


def fixtures() -> Iterator[tuple[str, Fixture]]:
    yield from FIXTURES.items()
    yield "resnet18", ResNet18().build()


def main(arguments: Sequence[str]) -> int:
    if len(arguments) != 1:
        print("usage: python -m passnet.fusion.fixtures DIR", file=sys.stderr)
        return 2
    for name, graph in fixtures():
        folder = Path(arguments[0]) / name
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "model.py").write_text(model_text(graph))
        (folder / "weight_meta.py").write_text(meta_text(graph))
        (folder / "input_meta.py").write_text("")
        (folder / "graph_net.json").write_text(json.dumps({"framework": "torch"}) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
