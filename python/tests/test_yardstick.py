"""When float64 excuses an element that differs from eager's; needs PyTorch, skipped without it.

The cases are those of `passnet-bench/src/evaluate/oracle`, and those that a comparison of largest errors misses.
"""

import math
import unittest

try:
    import torch
except ImportError as error:
    raise unittest.SkipTest("PyTorch is not installed") from error

from passnet.parity.yardstick import excesses, judge, worst_excess

NAN, INF = math.nan, math.inf


def as_accurate_as_eager(
    truth: list[torch.Tensor], eager: list[torch.Tensor], found: list[torch.Tensor]
) -> bool:
    judgement = judge(truth, eager, found, -5)
    return judgement is not None and judgement.is_right


def holds(truth: list[float], eager: list[float], found: list[float]) -> bool:
    exact = torch.tensor(truth, dtype=torch.float64)
    return as_accurate_as_eager([exact], [torch.tensor(eager)], [torch.tensor(found)])


class Excess(unittest.TestCase):
    def test_infinities_are_equal_to_themselves_alone(self) -> None:
        for one, other in [(INF, -INF), (INF, 1.0), (1.0, INF), (NAN, INF), (NAN, 1.0), (1.0, NAN)]:
            found = worst_excess(torch.tensor([one]), torch.tensor([other]), 5)
            self.assertEqual(found, INF, (one, other))
        for same in (INF, -INF, NAN):
            self.assertEqual(worst_excess(torch.tensor([same]), torch.tensor([same]), -10), 0.0)

    def test_large_integers_are_compared_exactly(self) -> None:
        one = torch.tensor([2**53, 2**53])
        self.assertEqual(excesses(one, torch.tensor([2**53 + 1, 2**53]), 5).tolist(), [INF, 0.0])

    def test_nothing_differs_in_nothing(self) -> None:
        self.assertEqual(worst_excess(torch.empty(0), torch.empty(0), -5), 0.0)


class Yardstick(unittest.TestCase):
    def test_a_result_closer_to_the_truth_than_eagers_is_accurate(self) -> None:
        self.assertTrue(holds([1.0, 2.0], [1.01, 2.0], [1.0, 2.0]))
        self.assertTrue(holds([1.0, 2.0], [1.01, 2.0], [0.995, 2.0]))

    def test_one_bad_element_of_eager_excuses_no_other(self) -> None:
        self.assertFalse(holds([1.0, 2.0], [1.01, 2.0], [1.0, 2.01]))
        self.assertFalse(holds([1.0, 2.0], [1.5, 2.0], [1.4, 2.4]))

    def test_twice_eagers_error_is_too_much(self) -> None:
        self.assertFalse(holds([1.0], [1.01], [0.985]))

    def test_no_number_is_near_to_a_number(self) -> None:
        self.assertFalse(holds([1.0, 2.0], [1.01, 2.0], [NAN, NAN]))
        self.assertFalse(holds([1.0, 2.0], [1.01, 2.0], [NAN, 2.0]))
        self.assertFalse(holds([1.0, 2.0], [1.01, 2.0], [INF, 2.0]))
        self.assertFalse(holds([1.0, 2.0], [1.01, 2.0], [-INF, INF]))

    def test_eager_that_is_no_number_forgives_nothing(self) -> None:
        for eager in (INF, -INF, NAN):
            self.assertFalse(holds([1.0], [eager], [5.0]), eager)
            self.assertTrue(holds([1.0], [eager], [1.0]), eager)
            self.assertTrue(holds([1.0], [eager], [eager]), "as eager")

    def test_a_truth_that_is_no_number_asks_for_eagers_result(self) -> None:
        for truth in (INF, -INF, NAN):
            self.assertFalse(holds([truth], [3.0], [4.0]), truth)
            self.assertFalse(holds([truth], [3.0], [NAN]), truth)
            self.assertTrue(holds([truth], [3.0], [3.0]), truth)

    def test_integers_and_booleans_have_no_excuse(self) -> None:
        truth, eager = [torch.tensor([3])], [torch.tensor([2])]
        self.assertFalse(as_accurate_as_eager(truth, eager, truth))
        truth, eager = [torch.tensor([True])], [torch.tensor([False])]
        self.assertFalse(as_accurate_as_eager(truth, eager, truth))

    def test_complex_numbers_are_judged_by_their_distance(self) -> None:
        truth = [torch.tensor([1.0 + 1.0j], dtype=torch.complex128)]
        eager = [torch.tensor([1.01 + 1.0j])]
        self.assertTrue(as_accurate_as_eager(truth, eager, [torch.tensor([1.0 + 0.995j])]))
        self.assertFalse(as_accurate_as_eager(truth, eager, [torch.tensor([1.0 + 1.02j])]))
        self.assertFalse(as_accurate_as_eager(truth, eager, [torch.tensor([complex(1.0, NAN)])]))

    def test_what_is_wrong_is_counted_and_measured(self) -> None:
        truth = [torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64)]
        eager, found = [torch.tensor([1.0, 2.0, 3.1])], [torch.tensor([1.0, 2.2, 3.0])]
        found_out = judge(truth, eager, found, -5)
        assert found_out is not None
        self.assertEqual((found_out.wrong, found_out.elements), (1, 3))
        self.assertAlmostEqual(found_out.found, 0.2 / (1e-5 + 1.3e-6 * 2), delta=1.0)
        self.assertAlmostEqual(found_out.eager, 0.1 / (1e-5 + 1.3e-6 * 3), delta=1.0)
        no_numbers = judge(truth, eager, [torch.full((3,), NAN)], -5)
        assert no_numbers is not None
        self.assertEqual((no_numbers.wrong, no_numbers.found), (3, INF))

    def test_outputs_that_do_not_correspond_are_not_accurate(self) -> None:
        one, two = torch.ones(1), torch.ones(2)
        self.assertFalse(as_accurate_as_eager([one], [two], [two]))
        self.assertFalse(as_accurate_as_eager([one, one], [one], [one]))
        self.assertFalse(as_accurate_as_eager([one], [one], [one.double()]))


if __name__ == "__main__":
    unittest.main()
