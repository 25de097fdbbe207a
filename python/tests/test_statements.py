"""Numbering of op statements, in the three textual styles."""

import unittest

from passnet.graphs.statements import Bind, Op, parse_model

UNPARSED = """
import torch

class GraphModule(torch.nn.Module):

    def forward(self, in_0, in_1):
        tmp_0 = in_0
        tmp_1 = torch.conv2d(in_1, tmp_0, None, (1, 1), (0, 0), (1, 1), 1)
        tmp_0 = None
        tmp_2 = tmp_1 > 0
        tmp_3 = -tmp_1
        tmp_1 = tmp_2 = None
        tmp_4 = tmp_3[0, slice(None, None, None)]
        tmp_5 = tmp_4.T
        return (tmp_5,)
"""

DYNAMO = """
class GraphModule(torch.nn.Module):



    def forward(self, in_0 : torch.Tensor, s0 : torch.SymInt, in_2):
        chunk = in_0.chunk(2, dim = 1);  in_0 = None
        getitem = chunk[0];  chunk = None
        in_2 += getitem;  in_3 = in_2;  in_2 = getitem = None
        in_3[slice(0, s0, None)] = 0;  setitem = in_3;  setitem = None
        _log = torch._C._log_api_usage_once('x');  _log = None
        return (in_3,)

"""

BLACK = """
class GraphModule(torch.nn.Module):
    def forward(self, L_x_: torch.Tensor):
        l_x_ = L_x_
        very_long_name = torch.nn.functional.linear(
            l_x_,
            l_x_,
        )
        l_x_ = (
            very_long_alias
        ) = (
            another
        ) = None
        y = very_long_name * 2
        return (y,)
"""


def names(source: str) -> list[str]:
    return [op.name for op in parse_model(source).ops]


class Numbering(unittest.TestCase):
    def test_unparsed_style(self) -> None:
        self.assertEqual(names(UNPARSED), ["tmp_1", "tmp_2", "tmp_3", "tmp_4", "tmp_5"])

    def test_semicolon_style_with_in_place_ops(self) -> None:
        self.assertEqual(names(DYNAMO), ["chunk", "getitem", "in_3", "setitem", "_log"])

    def test_wrapped_clean_up_is_no_op(self) -> None:
        self.assertEqual(names(BLACK), ["very_long_name", "y"])
        steps = parse_model(BLACK).steps
        self.assertIn(Bind(("l_x_", "very_long_alias", "another"), None), steps)

    def test_indices_count_ops_only(self) -> None:
        ops = parse_model(UNPARSED).ops
        self.assertEqual([op.index for op in ops], list(range(5)))
        self.assertTrue(all(isinstance(op, Op) for op in ops))

    def test_arguments_and_annotations(self) -> None:
        arguments = parse_model(DYNAMO).arguments
        self.assertEqual([a.name for a in arguments], ["in_0", "s0", "in_2"])
        self.assertEqual([a.is_symint for a in arguments], [False, True, False])

    def test_augmented_assignment_without_alias_keeps_its_name(self) -> None:
        source = "def forward(self, a, b):\n    a += b\n    c = b\n    return (a,)\n"
        self.assertEqual(names(source), ["a"])

    def test_no_forward(self) -> None:
        with self.assertRaises(ValueError):
            parse_model("x = 1")


if __name__ == "__main__":
    unittest.main()
