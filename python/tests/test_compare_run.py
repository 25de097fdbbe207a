"""What counts as equal to PyTorch's outputs, and what as an excuse; needs PyTorch, skipped without it."""

import json
import struct
import tempfile
import unittest
from pathlib import Path

try:
    import torch
except ImportError as error:
    raise unittest.SkipTest("PyTorch is not installed") from error

from passnet.parity.compare_run import Options, judge, leaves, read_safetensors, run_graph
from passnet.parity.yardstick import worst_excess

SOURCE = """
import torch

class GraphModule(torch.nn.Module):
    def forward(self, x):
        y = x.to(torch.float16)
        z = y.sum()
        return (z,)
"""

SUMS = """
import torch

class GraphModule(torch.nn.Module):
    def forward(self, x, y):
        z = x.to(torch.float16) + y.to(torch.float16)
        first = z[slice(None, 2, None)]
        return (first,)
"""


class CompareRunTest(unittest.TestCase):
    def test_the_level_decides_what_is_equal(self) -> None:
        ones = torch.ones(4)
        assert worst_excess(ones, ones + 1e-5, -5) <= 1.0
        assert worst_excess(ones, ones + 1e-4, -5) > 1.0
        assert worst_excess(ones, ones + 1e-4, -3) <= 1.0

    def test_nan_equals_nan_and_nothing_else(self) -> None:
        nan = torch.tensor([float("nan"), 1.0])
        assert worst_excess(nan, nan.clone(), -5) == 0.0
        assert worst_excess(nan, torch.ones(2), -5) == float("inf")

    def test_integers_are_compared_exactly(self) -> None:
        assert worst_excess(torch.tensor([5]), torch.tensor([6]), 0) == float("inf")

    def test_rounding_no_worse_than_torch_is_told_from_a_mistake(self) -> None:
        inputs = {"x": torch.rand(1000)}
        expected = run_graph(SOURCE, inputs, 0)
        exact = inputs["x"].double().sum()
        better = [exact.to(torch.float16)]
        assert judge("g", SOURCE, inputs, expected, better, (), Options(level=-10)).status in (
            "equal",
            "as accurate",
        )
        wrong = [expected[0] + 64]
        assert judge("g", SOURCE, inputs, expected, wrong, (), Options()).status == "different"

    def test_outputs_that_are_no_numbers_are_never_excused(self) -> None:
        inputs = {"x": torch.rand(1000)}
        expected = run_graph(SOURCE, inputs, 0)
        for bad in (float("nan"), float("inf"), float("-inf")):
            found = [torch.full_like(expected[0], bad)]
            assert judge("g", SOURCE, inputs, expected, found, (), Options()).status == "different"

    def test_an_error_elsewhere_is_not_excused_by_eagers_largest(self) -> None:
        inputs = {"x": torch.tensor([2048.0, 1.0, 1.0]), "y": torch.tensor([1.0, 1.0, 1.0])}
        expected = run_graph(SUMS, inputs, 0)
        assert expected[0].tolist() == [2048.0, 2.0], "2049 is no number of float16"
        better = [torch.tensor([2050.0, 2.0], dtype=torch.float16)]
        options = Options(level=-6)
        assert judge("g", SUMS, inputs, expected, better, (), options).status == "as accurate"
        worse = [torch.tensor([2048.0, 2.5], dtype=torch.float16)]
        assert judge("g", SUMS, inputs, expected, worse, (), options).status == "different"

    def test_shapes_and_types_must_be_the_same(self) -> None:
        inputs = {"x": torch.rand(3)}
        expected = run_graph(SOURCE, inputs, 0)
        found = [expected[0].float()]
        assert judge("g", SOURCE, inputs, expected, found, (), Options()).status == "different"

    def test_numbers_are_outputs_too(self) -> None:
        assert [t.dtype for t in leaves((torch.ones(1), [3, 2.5, True]))] == [
            torch.float32,
            torch.int64,
            torch.float64,
            torch.bool,
        ]

    def test_a_dump_is_read_back(self) -> None:
        header = {
            "input.x": {"dtype": "F32", "shape": [2, 1], "data_offsets": [0, 8]},
            "output.0": {"dtype": "I64", "shape": [], "data_offsets": [8, 16]},
            "output.1": {"dtype": "BOOL", "shape": [0], "data_offsets": [16, 16]},
        }
        text = json.dumps(header).encode()
        body = struct.pack("<ffq", 1.5, -2.0, 7)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "dump.safetensors"
            path.write_bytes(len(text).to_bytes(8, "little") + text + body)
            tensors = read_safetensors(path)
        assert tensors["input.x"].tolist() == [[1.5], [-2.0]]
        assert tensors["output.0"].item() == 7
        assert tensors["output.1"].numel() == 0


if __name__ == "__main__":
    unittest.main()
