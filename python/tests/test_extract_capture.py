"""Modules become graph folders: text, metadata, graph breaks; needs PyTorch, skipped without it."""

import ast
import importlib.util
import json
import tempfile
import unittest
from pathlib import Path

try:
    import torch
except ImportError as error:
    raise unittest.SkipTest("PyTorch is not installed") from error

from passnet.extract.capture import capture
from passnet.extract.errors import CaptureError
from passnet.extract.folder import write_capture
from passnet.extract.fx_text import public_names
from passnet.extract.lazy_init import LazyInit
from passnet.extract.metadata import Describer, Range
from passnet.graphs.replay import read_metas

from torch import nn


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(1_000, 64)
        self.linear = nn.Linear(64, 4)
        self.register_buffer("order", torch.arange(100))

    def forward(self, tokens):
        hidden = torch.nn.functional.gelu(self.table(tokens))
        return self.linear(hidden) + self.order.sum()


class Breaks(nn.Module):
    def forward(self, x):
        y = x * 2
        torch._dynamo.graph_break()
        z = y + 1
        torch._dynamo.graph_break()
        return torch.relu(z)


class Fallible(nn.Module):
    """The path depends on the values."""

    def forward(self, x):
        if x.sum() > 0:
            return x + 1
        return x - 1


class Folders(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name) / "net"

    def test_a_folder_has_every_file_and_public_names(self) -> None:
        tokens = torch.randint(0, 10, (1, 80))
        with LazyInit() as weights:
            net = Net().eval()
        found = capture(net, (tokens,))
        describer = Describer(weights)
        describer.remember(tokens, Range(0, 999))
        write_capture(self.folder, found, describer, {"source": "test"})

        text = (self.folder / "model.py").read_text()
        self.assertIn("torch.nn.functional.gelu(", text)
        self.assertIn("torch.nn.functional.linear(", text)
        self.assertNotIn("_C", text)
        metas = {meta.name: meta for meta in read_metas(self.folder / "weight_meta.py")}
        signature = ast.parse(text).body[-1].body[0].args.args
        self.assertEqual({argument.arg for argument in signature[1:]}, set(metas))
        tokens_meta = metas["L_tokens_"]
        self.assertEqual((tokens_meta.min_val, tokens_meta.max_val, tokens_meta.data), (0, 999, None))
        order = metas["L_self_buffers_order_"]
        self.assertEqual((order.min_val, order.max_val), (0, 99))
        table = metas["L_self_modules_table_parameters_weight_"]
        self.assertAlmostEqual(table.std, 1.0, delta=0.02)
        self.assertEqual(len(metas["L_self_modules_linear_parameters_bias_"].data), 4)
        self.assertEqual(json.loads((self.folder / "graph_net.json").read_text())["source"], "test")
        self.assertEqual(len((self.folder / "graph_hash.txt").read_text()), 64)

    def test_what_is_written_computes_what_the_module_computes(self) -> None:
        torch.manual_seed(0)
        net, tokens = Net().eval(), torch.randint(0, 1_000, (2, 7))
        found = capture(net, (tokens,))
        scope: dict = {}
        exec(found.graphs[0].written.code, scope)  # noqa: S102 - our own text
        values = [argument.value for argument in found.graphs[0].arguments]
        with torch.no_grad():
            (answer,) = scope["GraphModule"]()(*values)
            torch.testing.assert_close(answer, net(tokens))

    def test_graph_breaks_give_numbered_graphs_and_reasons(self) -> None:
        found = capture(Breaks(), (torch.ones(3),))
        self.assertEqual(len(found.graphs), 3)
        self.assertTrue(found.breaks)
        folders = write_capture(self.folder, found, Describer(), {})
        self.assertEqual([folder.name for folder in folders], ["subgraph_0", "subgraph_1", "subgraph_2"])
        self.assertFalse((self.folder / "model.py").exists())
        texts = [(folder / "model.py").read_text() for folder in folders]
        self.assertIn(" * 2", texts[0])
        self.assertIn("relu", texts[2])

    def test_nothing_is_overwritten(self) -> None:
        found = capture(nn.ReLU(), (torch.ones(3),))
        write_capture(self.folder, found, Describer(), {})
        before = (self.folder / "model.py").read_bytes()
        with self.assertRaises(FileExistsError):
            write_capture(self.folder, capture(nn.Tanh(), (torch.ones(3),)), Describer(), {})
        self.assertEqual((self.folder / "model.py").read_bytes(), before)

    def test_two_captures_give_the_same_bytes(self) -> None:
        texts = []
        for name in ("a", "b"):
            torch.manual_seed(1)
            with LazyInit() as weights:
                net = Net().eval()
            folder = self.folder / name
            write_capture(folder, capture(net, (torch.ones(1, 3, dtype=torch.long),)), Describer(weights), {})
            texts.append({file.name: file.read_bytes() for file in sorted(folder.iterdir())})
        self.assertEqual(*texts)

    def test_symbolic_sizes_become_symbols(self) -> None:
        class Sum(nn.Module):
            def forward(self, x):
                return x.reshape(-1) + x.shape[0]

        found = capture(Sum(), (torch.ones(5, 3),), dynamic=True)
        write_capture(self.folder, found, Describer(), {})
        text = (self.folder / "input_tensor_constraints.py").read_text()
        self.assertIn('S0 = Symbol("S0")', text)
        self.assertIn("S0: 5", text)
        self.assertIn("torch.SymInt", (self.folder / "model.py").read_text())


class Refusals(unittest.TestCase):
    def test_data_dependent_control_flow_breaks_the_graph_or_is_refused(self) -> None:
        found = capture(Fallible(), (torch.ones(3),))
        self.assertTrue(any("data-dependent" in reason.lower() for reason in found.breaks), found.breaks)
        with self.assertRaisesRegex(Exception, "(?i)data-dependent"):
            capture(Fallible(), (torch.ones(3),), fullgraph=True)

    def test_a_module_without_operations_has_no_graph(self) -> None:
        with self.assertRaises(CaptureError) as caught:
            capture(nn.Identity(), (torch.ones(3),))
        self.assertEqual(caught.exception.kind, "no graph")

    @unittest.skipUnless(importlib.util.find_spec("einops"), "needs einops")
    def test_einops_becomes_operations_of_torch(self) -> None:
        import einops

        class Patches(nn.Module):
            def forward(self, x):
                return einops.reduce(einops.rearrange(x, "b c (h p) w -> b h (p w) c", p=2), "b h n c -> b c", "mean")

        found = capture(Patches(), (torch.ones(1, 3, 4, 4),))
        self.assertEqual(len(found.graphs), 1)
        self.assertIn(".permute(", found.graphs[0].written.code)
        self.assertNotIn("einops", found.graphs[0].written.code)

    def test_an_operation_from_outside_torch_is_named(self) -> None:
        with torch.library._scoped_library("passnet_test", "FRAGMENT") as library:
            library.define("twice(Tensor x) -> Tensor")
            library.impl("twice", lambda x: x * 2, "CompositeExplicitAutograd")

            class Custom(nn.Module):
                def forward(self, x):
                    return torch.ops.passnet_test.twice(x)

            with self.assertRaisesRegex(Exception, "passnet_test.twice"):
                capture(Custom(), (torch.ones(3),))


class PublicNames(unittest.TestCase):
    def test_private_spellings(self) -> None:
        cases = {
            "torch._C._nn.gelu(x)": "torch.nn.functional.gelu(x)",
            "torch._C._fft.fft_rfft(x)": "torch.fft.rfft(x)",
            "torch._C._linalg.linalg_vector_norm(x)": "torch.linalg.vector_norm(x)",
            "torch._C._nn.no_such_thing(x)": "torch._C._nn.no_such_thing(x)",
            "torch._C._set_grad_enabled(False)": "torch.set_grad_enabled(False)",
        }
        for private, public in cases.items():
            self.assertEqual(public_names(private), public)


if __name__ == "__main__":
    unittest.main()
