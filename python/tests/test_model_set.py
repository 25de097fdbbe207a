"""The models of `tools/model_set.py` through the backend: `python -m unittest tests.test_model_set`
(needs PyTorch, transformers and the `passnet` program)."""

import json
import subprocess
import sys
import unittest
import warnings

from tests.backend_library import ROOT, BackendCase, program
from tests.test_backend import torch

try:
    import transformers
except ImportError:
    transformers = None

if torch is not None and transformers is not None:
    sys.path.insert(0, str(ROOT / "tools"))
    import model_set


@unittest.skipIf(torch is None or transformers is None, "PyTorch or transformers is not installed")
@unittest.skipIf(program() is None, "the passnet program is not built")
class ModelSetTest(BackendCase):
    def test_every_model_gives_what_eager_gives(self):
        from passnet.backend import report
        from passnet.backend.models import tensors

        self.library.run("add", "--bundled")
        replaced = 0
        for name, factory in model_set.MODELS.items():
            for options in ({}, {"rest": "fastest"}) if name in ("unet", "bert_base") else ({},):
                with self.subTest(name, **options):
                    torch._dynamo.reset()
                    torch.manual_seed(0)
                    module, inputs = factory(small=True)
                    module.eval()
                    compiled = self.compiled(module, **options)
                    with torch.inference_mode(), warnings.catch_warnings():
                        warnings.simplefilter("ignore")
                        for _ in range(2):
                            found, expected = tensors(compiled(*inputs)), tensors(module(*inputs))
                            self.assertEqual(len(found), len(expected))
                            for one, two in zip(found, expected):
                                self.assertTrue(bool(two.abs().max() > 1e-3), "nothing to compare")
                                torch.testing.assert_close(one, two, atol=1e-4, rtol=1e-4)
                    replaced += sum(graph["replaced"] for graph in report().as_dict()["graphs"])
        self.assertGreater(replaced, 50)

    def test_a_table_has_a_line_for_each_model_and_batch(self):
        out = self.library.folder.parent / "table.jsonl"
        table = [sys.executable, str(ROOT / "tools/model_table.py")]
        options = ["--library", str(self.library.folder), "--only", "graph_network,unet", "--small", "--batch", "1,2"]
        options += ["--ways", "eager", "--side-by-side", "3", "--seconds", "0.01", "--device", "cpu", "--out", str(out)]
        subprocess.run([*table, *options], check=True, capture_output=True)
        lines = [json.loads(line) for line in out.read_text().splitlines()]
        found = [(line["name"], line["batch"], line["ways"][0]["right"]) for line in lines]
        self.assertEqual(found, [(name, batch, True) for batch in (1, 2) for name in ("graph_network", "unet")])
        shown = subprocess.run([*table, "--show", str(out)], check=True, capture_output=True, text=True)
        self.assertEqual(len(shown.stdout.splitlines()), 4)
        missing = subprocess.run([*table, "--show", str(out) + "x"], capture_output=True, text=True)
        self.assertEqual((missing.returncode, "nothing was measured" in missing.stderr), (1, True))


if __name__ == "__main__":
    unittest.main()
