"""Prefixes return what the rest of the graph reads, under whatever name it lives on; needs PyTorch, skipped without it."""

import unittest

try:
    import torch
except ImportError as error:
    raise unittest.SkipTest("PyTorch is not installed") from error

from passnet.graphs.prefixes import prefix, trace
from passnet.graphs.statements import parse_model

MODEL = """
class GraphModule(torch.nn.Module):
    def forward(self, x: torch.Tensor, y: torch.Tensor, unused: torch.Tensor):
        a = x + y
        b = a * 2
        a += b
        c = a
        a = None
        d = c - y
        e = d.sum()
        return (e, b)
"""


class Prefixes(unittest.TestCase):
    def setUp(self) -> None:
        self.forward = parse_model(MODEL)
        self.traced = trace(self.forward)

    def results(self, ops: int) -> list[float]:
        piece = prefix(self.forward, self.traced, ops)
        given = {"x": torch.tensor(3.0), "y": torch.tensor(1.0)}
        return [v.item() for v in piece.function(*(given[name] for name in piece.arguments))]

    def test_a_prefix_returns_live_values_in_the_order_they_were_made(self) -> None:
        self.assertEqual(self.results(1), [4.0])
        self.assertEqual(self.results(2), [4.0, 8.0])

    def test_a_value_written_in_place_is_returned_under_its_new_name(self) -> None:
        self.assertEqual(self.results(3), [8.0, 12.0])
        self.assertEqual(self.results(4), [8.0, 11.0])

    def test_the_longest_prefix_returns_what_the_graph_returns(self) -> None:
        self.assertEqual(self.results(5), [8.0, 11.0])

    def test_unused_arguments_are_dropped(self) -> None:
        self.assertEqual(prefix(self.forward, self.traced, 5).arguments, ("x", "y"))


if __name__ == "__main__":
    unittest.main()
