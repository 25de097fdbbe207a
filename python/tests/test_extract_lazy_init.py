"""Initialisers that are recorded instead of run; needs PyTorch, skipped without it."""

import unittest

try:
    import torch
except ImportError as error:
    raise unittest.SkipTest("PyTorch is not installed") from error

from passnet.extract.lazy_init import LazyInit
from torch import nn

SIZE = (300, 200)


class Recorded(unittest.TestCase):
    def sample(self, initialise) -> torch.Tensor:  # noqa: ANN001
        """What is known of a weight that `initialise` was asked to fill."""
        with LazyInit() as weights:
            parameter = nn.Parameter(torch.empty(SIZE))
            initialise(parameter)
        found = weights.sample_of(parameter)
        assert found is not None, "the initialiser was run"
        return found

    def test_distributions_are_those_of_the_initialisers(self) -> None:
        initialisers = {
            "normal": lambda p: nn.init.normal_(p, 0.5, 0.02),
            "uniform": lambda p: nn.init.uniform_(p, -1, 3),
            "truncated": lambda p: nn.init.trunc_normal_(p, std=0.7, a=-1.0, b=1.0),
            "kaiming": nn.init.kaiming_uniform_,
            "xavier": nn.init.xavier_normal_,
            "scaled": lambda p: nn.init.normal_(p, std=0.02).data.div_(4.0),
            "constant": lambda p: nn.init.constant_(p, 2.5),
        }
        for name, initialise in initialisers.items():
            with self.subTest(name):
                expected = torch.empty(SIZE)
                with torch.no_grad():
                    initialise(nn.Parameter(expected))
                found = self.sample(initialise)
                spread = float(expected.std()) + 1e-6
                self.assertAlmostEqual(float(found.mean()), float(expected.mean()), delta=0.05 * spread + 1e-6)
                self.assertAlmostEqual(float(found.std()), float(expected.std()), delta=0.05 * spread)
                self.assertAlmostEqual(float(found.max()), float(expected.max()), delta=spread)

    def test_a_layer_larger_than_memory_can_be_made(self) -> None:
        with LazyInit() as weights:
            layers = [nn.Linear(1 << 15, 1 << 15) for _ in range(64)]  # 256 GiB
        self.assertTrue(all(weights.sample_of(layer.weight) is not None for layer in layers))

    def test_a_padding_row_is_a_detail(self) -> None:
        with LazyInit() as weights:
            table = nn.Embedding(1_000, 64, padding_idx=0)
        found = weights.sample_of(table.weight)
        assert found is not None
        self.assertAlmostEqual(float(found.std()), 1.0, delta=0.03)
        weights.write_all()
        self.assertEqual(float(table.weight[0].detach().abs().sum()), 0.0)
        self.assertAlmostEqual(float(table.weight.detach().std()), 1.0, delta=0.03)

    def test_reading_a_weight_writes_it_first(self) -> None:
        with LazyInit() as weights:
            parameter = torch.empty(SIZE)
            nn.init.constant_(parameter, 3.0)
            total = float(parameter.sum())
        self.assertEqual(total, 3.0 * 300 * 200)
        self.assertIsNone(weights.sample_of(parameter))

    def test_small_weights_are_written(self) -> None:
        with LazyInit() as weights:
            layer = nn.Linear(4, 4)
        self.assertIsNone(weights.sample_of(layer.weight))
        self.assertGreater(float(layer.weight.detach().abs().sum()), 0.0)

    def test_creations_copies_and_casts(self) -> None:
        with LazyInit() as weights:
            made = torch.randn(SIZE) * 0.02
            half = made.half()
            twin = made.clone()
        for tensor in (made, half, twin):
            found = weights.sample_of(tensor)
            assert found is not None
            self.assertAlmostEqual(float(found.float().std()), 0.02, delta=0.001)


if __name__ == "__main__":
    unittest.main()
