"""Graphs run on meta tensors; needs PyTorch, skipped without it."""

import os
import tempfile
import unittest
from pathlib import Path
from typing import Any

try:
    import torch
except ImportError as error:
    raise unittest.SkipTest("PyTorch is not installed") from error

from passnet.parity.compare_print import same_bits
from passnet.parity.compare_shapes import ShapeReport, compare_graph, equal_types
from passnet.graphs.shapes import graph_types, in_processes

MODEL = """
import torch
from torch import device

class GraphModule(torch.nn.Module):
    def forward(self, x: torch.Tensor, n: torch.Tensor, s0: torch.SymInt):
        a = x.transpose(0, 1)
        a += 1.0;  b = a;  a = None
        k = n.item();  n = None
        c = torch.arange(k, device = device(type='cuda', index=0))
        d = b.reshape(s0, -1)
        e = d.view(7, 7)
        return (c, e)
"""

META = """
class Program_weight_tensor_meta_x:
    name = "x"
    shape = [2, 3]
    dtype = "torch.float32"
    data = None


class Program_weight_tensor_meta_n:
    name = "n"
    shape = []
    dtype = "torch.int64"
    data = [5]


class Program_weight_tensor_meta_s0:
    name = "s0"
    shape = []
    dtype = "torch.int64"
    data = [3]
"""


def write_graph(folder: str) -> Path:
    path = Path(folder)
    (path / "model.py").write_text(MODEL)
    (path / "weight_meta.py").write_text(META)
    return path


class OnMeta(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.types = graph_types(write_graph(folder.name))

    def test_nodes_up_to_the_failure_are_kept(self) -> None:
        self.assertFalse(self.types.runnable)
        self.assertEqual(self.types.failed_at, 5)
        self.assertIn("invalid for input of size 6", self.types.reason or "")
        self.assertEqual([node.name for node in self.types.nodes], ["a", "b", "k", "c", "d"])

    def test_types(self) -> None:
        a, b, k, c, d = (node.type for node in self.types.nodes)
        self.assertEqual(a, {"dtype": "float32", "shape": [3, 2], "stride": [1, 3]})
        self.assertEqual(b, a)
        self.assertEqual(k, {"scalar": "int", "value": 5})
        self.assertEqual(c, {"dtype": "int64", "shape": [5], "stride": [1]})
        self.assertEqual(d["shape"], [3, 2])

    def test_comparison_counts_wrong_unknown_and_missing_nodes(self) -> None:
        nodes: list[dict[str, Any]] = [
            {"index": n.index, "op": n.name, "type": dict(n.type)} for n in self.types.nodes[:4]
        ]
        nodes[0]["type"]["stride"] = [2, 1]
        nodes[1]["type"]["dtype"] = "float16"
        nodes[3]["type"] = {"unknown": "size"}
        report = ShapeReport()
        compare_graph(report, self.types, nodes)
        self.assertEqual((report.nodes, report.equal, report.equal_strides), (5, 2, 1))
        self.assertEqual(report.unknown, 2)
        self.assertEqual(sorted(report.kinds), ["b", "c", "missing"])
        self.assertEqual(sorted(report.strides), ["a"])
        self.assertTrue(report.failed)


class Equality(unittest.TestCase):
    def test_scalars_without_a_value_are_equal_by_kind(self) -> None:
        known = {"scalar": "float", "value": 0.5}
        self.assertTrue(equal_types(known, {"scalar": "float", "value": None}))
        self.assertFalse(equal_types(known, {"scalar": "int", "value": None}))
        self.assertFalse(equal_types(known, {"scalar": "float", "value": 0.25}))

    def test_bits(self) -> None:
        nan = torch.tensor([float("nan"), 0.0])
        self.assertTrue(same_bits(nan, nan.clone()))
        self.assertFalse(same_bits(nan, torch.tensor([float("nan"), -0.0])))
        self.assertFalse(same_bits(nan, nan.double()))


def survive_or_die(folder: Path) -> str:
    if folder.name == "bad":
        os._exit(9)
    return folder.name


class Processes(unittest.TestCase):
    def test_a_crash_costs_only_its_own_graph(self) -> None:
        folders = [Path(name) for name in ("a", "bad", "b", "c")]
        answers = list(in_processes(survive_or_die, folders, lambda path: f"{path} crashed"))
        self.assertEqual(answers, ["a", "bad crashed", "b", "c"])


if __name__ == "__main__":
    unittest.main()
