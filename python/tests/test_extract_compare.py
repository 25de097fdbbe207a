"""Graphs read back from disk compute what their modules compute; needs PyTorch, skipped without it."""

import tempfile
import unittest
from pathlib import Path

try:
    import torch
except ImportError as error:
    raise unittest.SkipTest("PyTorch is not installed") from error

from passnet.extract.compare import compare
from passnet.extract.model import from_answer
from torch import nn


class Broken(nn.Module):
    """Two graphs, a constant inside one of them, and an input that is written to."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(6, 3)

    def forward(self, x):
        x += 1
        y = self.linear(x) + torch.tensor([1.0, 2.0, 3.0])
        torch._dynamo.graph_break()
        return {"first": torch.relu(y), "rest": (y.sum(), [y.argmax()])}


class Random(nn.Module):
    """Not the same twice, whatever the seed."""

    calls = 0

    def forward(self, x):
        Random.calls += 1
        return x + Random.calls


class Comparison(unittest.TestCase):
    def compare(self, module: nn.Module, inputs: torch.Tensor) -> dict:
        with tempfile.TemporaryDirectory() as folder:
            return compare(lambda: from_answer((module, inputs)), Path(folder) / "net", {})

    def test_equal_outputs(self) -> None:
        answer = self.compare(Broken(), torch.randn(2, 6))
        self.assertEqual(answer["outcome"], "captured", answer)
        self.assertEqual((answer["graphs"], answer["outputs"]), (2, 3))
        self.assertEqual(answer["largest_difference"], 0.0)

    def test_a_difference_is_found(self) -> None:
        answer = self.compare(Random(), torch.ones(3))
        self.assertEqual(answer["kind"], "different", answer)


if __name__ == "__main__":
    unittest.main()
