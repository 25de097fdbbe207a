"""What `tools/kernel_guesses.py` makes of a kernel's parameters."""

import ast
import sys
import unittest
from pathlib import Path
from types import SimpleNamespace

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))
from kernel_guesses import Arg, guesses  # noqa: E402

TEXT = """
def rows(base, row, stride, BLOCK: tl.constexpr):
    return tl.load(base + row * stride + tl.arange(0, BLOCK))

def kernel(X, table, out_ptr, bias_ptr, mask_ptr, desc, stride, n, eps, KIND: tl.constexpr, HAS_BIAS: tl.constexpr,
           TILE: tl.constexpr, OUT: tl.constexpr):
    at = tl.arange(0, TILE)
    row = tl.load(table + tl.program_id(0))
    x = rows(X, row, stride, TILE) + eps
    if HAS_BIAS:
        x += tl.load(bias_ptr + at, mask=at < n)
    if KIND == "silu":
        x = desc.load([row, 0])
    tl.store(out_ptr + at, x.to(OUT), mask=tl.load(mask_ptr + at))
"""


class Guesses(unittest.TestCase):
    def setUp(self):
        functions = {node.name: node for node in ast.parse(TEXT).body}
        self.found = list(guesses(SimpleNamespace(name="kernel", functions=functions)))

    def test_the_first_follows_how_parameters_are_used(self):
        self.assertEqual(
            self.found[0],
            {
                "X": Arg("pointer", "float32"),
                "table": Arg("pointer", "int32"),
                "out_ptr": Arg("pointer", "float32"),
                "bias_ptr": Arg("pointer", "float32"),
                "mask_ptr": Arg("pointer", "int1"),
                "desc": Arg("descriptor", "float32", 2),
                "stride": Arg("int", "int32"),
                "n": Arg("int", "int32"),
                "eps": Arg("float", "0.5"),
                "KIND": Arg("const", "'silu'"),
                "HAS_BIAS": Arg("const", "True"),
                "TILE": Arg("const", "32"),
                "OUT": Arg("const", "tl.float32"),
            },
        )

    def test_later_ones_differ_in_types_flags_and_sizes(self):
        self.assertGreater(len(self.found), 10)
        self.assertIn(Arg("pointer", "float16"), {guess["X"] for guess in self.found})
        self.assertIn(Arg("const", "False"), {guess["HAS_BIAS"] for guess in self.found})
        self.assertIn(Arg("const", "128"), {guess["TILE"] for guess in self.found})
        self.assertEqual(len(self.found), len({repr(guess) for guess in self.found}))


if __name__ == "__main__":
    unittest.main()
