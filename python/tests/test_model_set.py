"""The models of `tools/model_set.py` through the backend: `python -m unittest tests.test_model_set`
(needs PyTorch, transformers and the `passnet` program)."""

import json
import subprocess
import sys
import tempfile
import unittest
import warnings
from pathlib import Path

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
        shown = shown.stdout.splitlines()
        self.assertEqual([line.split("|")[0].split() for line in shown[:4]], [[name, str(batch)] for name, batch, _ in found])
        self.assertIn("batch 2: wrong outputs: none", shown)
        self.assertTrue(any("models that are missing: resnet50, " in line for line in shown), shown)
        missing = subprocess.run([*table, "--show", str(out) + "x"], capture_output=True, text=True)
        self.assertEqual((missing.returncode, "nothing was measured" in missing.stderr), (1, True))

    def test_a_sitting_of_two_parts_compiles_what_was_chosen(self):
        place = self.library.folder.parent
        table = [sys.executable, str(ROOT / "tools/model_table.py"), "--library", str(self.library.folder), "--trust", "all"]
        table += ["--only", "bert_base,vit_base", "--small", "--batch", "1", "--side-by-side", "2", "--device", "cpu"]
        choose = [*table, "--choose", "--out", str(place / "choices.jsonl")]
        for lines in (2, 0):
            said = subprocess.run(choose, check=True, capture_output=True, text=True).stdout.splitlines()
            self.assertEqual(len(said), lines, said)
        ways = ["--cold", "--ways", "eager,inductor,passnet-fastest", "--seconds", "0.01", "--resting", "2"]
        subprocess.run([*table, *ways, "--out", str(place / "table.jsonl")], check=True, capture_output=True)
        for line in map(json.loads, (place / "table.jsonl").read_text().splitlines()):
            found = {timed["way"]: timed for timed in line["ways"]}
            self.assertEqual([found[way]["right"] for way in ("eager", "inductor", "passnet-fastest")], [True] * 3)
            self.assertIs(found["passnet-fastest"]["known"], True)
        shown = subprocess.run([*table, "--show", str(place / "table.jsonl")], check=True, capture_output=True, text=True).stdout
        self.assertRegex(shown, r"batch 1: passnet-fastest is [\d.]+x inductor, geometric mean of 2 models")
        self.assertRegex(shown, r"passnet-fastest takes [\d.]+ of inductor's time to compile, geometric mean of 2 models; at most")
        self.assertIn("models that are missing: none; ways that are: none", shown)

    def test_a_way_that_is_late_takes_none_of_the_others_with_it(self):
        out = self.library.folder.parent / "table.jsonl"
        table = [sys.executable, str(ROOT / "tools/model_table.py"), "--library", str(self.library.folder), "--device", "cpu"]
        table += ["--only", "unet", "--small", "--batch", "1", "--seconds", "0.01", "--out", str(out)]
        late = [*table, "--ways", "eager,inductor", "--begin-within", "0"]
        self.assertEqual(subprocess.run(late, capture_output=True).returncode, 1)
        # Nothing at all was begun, and what there is says so.
        self.assertEqual([timed["error"] for timed in json.loads(out.read_text())["ways"]], ["not begun in time"] * 2)
        shown = subprocess.run([*table, "--show", str(out)], check=True, capture_output=True, text=True).stdout
        self.assertIn("models that are missing: none; ways that are: unet eager (not begun in time), unet inductor", shown)


class TableTest(unittest.TestCase):
    """What `tools/model_table.py --show` says of a table."""

    def shown(self, *results):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "table.jsonl"
            path.write_text("".join(json.dumps(result) + "\n" for result in results))
            command = [sys.executable, str(ROOT / "tools/model_table.py"), "--show", str(path), "--only", "unet,bert_base,vit_base"]
            return subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()

    def result(self, name, known=True, right=True, **ways):
        found = [
            {"way": way.replace("_", "-"), "ms": ms, "compile_seconds": seconds, "memory": memory, "right": right, "error": None}
            for way, (ms, seconds, memory) in ways.items()
        ]
        for timed in found:
            timed["known"] = known if timed["way"].startswith("passnet") else None
        return {"name": name, "batch": 1, "ways": found}

    def test_compile_times_and_memory_are_held_against_the_others(self):
        one = self.result("unet", eager=(4.0, 0.1, 100), inductor=(3.0, 10.0, 110), passnet_fastest=(1.0, 20.0, 90))
        two = self.result("bert_base", eager=(1.0, 0.1, 100), inductor=(3.0, 10.0, 110), passnet_fastest=(1.0, 5.0, 160))
        lines = [line.removeprefix("batch 1: passnet-fastest ") for line in self.shown(one, two)]
        self.assertIn("is 2.00x eager, geometric mean of 2 models", lines)
        self.assertIn("takes 1.00 of inductor's time to compile, geometric mean of 2 models; at most 2.00 (unet)", lines)
        self.assertIn("takes 1.20 of eager's memory, geometric mean of 2 models; at most 1.60 (bert_base)", lines)
        self.assertIn("takes more than 1.2 of eager's memory on: bert_base 1.60", lines)
        self.assertIn("batch 1: models that are missing: vit_base; ways that are: none", lines)

    def test_a_choice_made_in_the_sitting_is_in_no_compile_time(self):
        one = self.result("unet", known=False, eager=(4.0, 0.1, 100), inductor=(3.0, 10.0, 110), passnet_fastest=(1.0, 20.0, 90))
        lines = self.shown(one)
        self.assertFalse(any("to compile" in line for line in lines), lines)
        self.assertIn("batch 1: passnet-fastest had to choose in this sitting, which is in no compile time above: unet", lines)

    def test_wrong_outputs_are_named(self):
        lines = self.shown(self.result("unet", right=False, eager=(4.0, 0.1, 100)))
        self.assertIn("batch 1: wrong outputs: unet eager", lines)


if __name__ == "__main__":
    unittest.main()
