"""Statements under names of their own; the trace of a CPU has them (there is no GPU in tests)."""

import json
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from passnet.graphs.profile_cuda import marked

GRAPH = Path(__file__).resolve().parents[2] / "examples/graphs/rms_norm_gate"


class Marks(unittest.TestCase):
    def test_every_computation_has_a_record(self):
        text = marked(
            "import torch\n\nclass GraphModule(torch.nn.Module):\n\n    def forward(self, x):\n"
            "        a = x + 1\n        x = None\n        a += 2\n        b, c = a.chunk(2)\n"
            "        a[0] = 1\n        return (b, c)\n"
        )
        for name in ("a", "b"):
            self.assertIn(f"record_function('passnet:{name}')", text)
        self.assertEqual(text.count("record_function"), 4)
        self.assertIn("        x = None", text)
        self.assertIn("        return (b, c)", text)

    def test_a_trace_holds_the_records(self):
        try:
            import torch  # noqa: F401
        except ImportError:
            self.skipTest("no PyTorch")
        with tempfile.TemporaryDirectory() as folder:
            out = Path(folder) / "trace.json"
            command = [sys.executable, "-m", "passnet.graphs.profile_cuda", str(GRAPH), "--out", str(out)]
            subprocess.run([*command, "--device", "cpu", "--calls", "2"], check=True)
            found = json.loads(out.read_text())
        names = [event.get("name") for event in found["trace"]["traceEvents"]]
        self.assertEqual(names.count("passnet:tmp_0"), 2)
        self.assertEqual(found["calls"], 2)


if __name__ == "__main__":
    unittest.main()
