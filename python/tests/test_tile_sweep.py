"""`tools/tile_sweep.py` without a GPU: how it changes the solver's text, and what it says of a sweep."""

from __future__ import annotations

import importlib.util
import json
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TOOL = ROOT / "tools/tile_sweep.py"
spec = importlib.util.spec_from_file_location("tile_sweep", TOOL)
tile_sweep = importlib.util.module_from_spec(spec)
spec.loader.exec_module(tile_sweep)

WRAPPER = """\
def both(x):
    tile = 256 if is_small else 1024
    width = max(64, columns & -columns)
    width = min(width, triton.next_power_of_2(columns), 512)
    height = min(triton.next_power_of_2(rows), max(1, 512 // width))
    one_kernel[(triton.cdiv(rows, height),)](x, out, ROWS=height, COLUMNS=width)
    two_kernel[(triton.cdiv(rows, height), 2)](
        x, out, ROWS=height, num_warps=4 if is_small else 8, enable_fp_fusion=False,
    )
"""


class Changes(unittest.TestCase):
    def test_tiles_and_warps_are_scaled_and_nothing_else(self) -> None:
        text = tile_sweep.changed(WRAPPER, (1, -1))
        self.assertIn("tile = 512 if is_small else 2048", text)
        self.assertIn("width = max(64, columns", text)
        self.assertIn("next_power_of_2(columns), 1024)", text)
        self.assertIn("max(1, 1024 // width)", text)
        self.assertIn("COLUMNS=width, num_warps=2)", text)
        self.assertIn("num_warps=2 if is_small else 4, enable", text)
        self.assertEqual(tile_sweep.changed(WRAPPER, (0, 0)), WRAPPER)

    def test_every_launch_of_the_samples_is_found(self) -> None:
        launches = 0
        for path in sorted((ROOT / "docs/solver-samples").rglob("*.py")):
            text = tile_sweep.changed(path.read_text(), (-1, 1))
            compile(text, str(path), "exec")
            here = len(re.findall(r"^    \w+_kernel\[", text, re.MULTILINE))
            self.assertEqual(text.count("num_warps="), here, path)
            launches += here
        self.assertGreater(launches, 5)

    def test_a_sweep_is_read(self) -> None:
        line = {"task": "a", "graph": "b", "kind": "a product", "inductor": 20.0}
        line["microseconds"] = [{"0,0": 10.0, "1,0": 5.0}, {"0,0": 10.0, "1,0": 5.0}]
        with tempfile.TemporaryDirectory() as place:
            path = Path(place) / "sweep.jsonl"
            path.write_text(json.dumps(line) + "\n" + json.dumps({"task": "c", "graph": "d", "failed": "no pass applies"}) + "\n")
            done = subprocess.run([sys.executable, TOOL, "show", path], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("1 of 2 graphs", done.stdout)
        self.assertIn("| 1,0 | 1 | 0.500 | 0.250 |", done.stdout)
        self.assertIn("| the best for each graph | 1 | 0.500 |", done.stdout)
        self.assertIn("| a product | 1 | 0.500 |", done.stdout)

    def test_kinds_of_graphs(self) -> None:
        def kind(call: str) -> str:
            return next(kind for kind, pattern in tile_sweep.KINDS if pattern.search(f"tmp_0 = {call}"))

        self.assertEqual(kind("torch.conv2d(in_0, w_0, w_1, (1, 1))"), "a convolution with bias")
        self.assertEqual(kind("torch.conv2d(in_0, w_0, None, (1, 1))"), "a convolution")
        self.assertEqual(kind("torch.nn.functional.linear(in_0, w_0, w_1)"), "a product")
        self.assertEqual(kind("in_0 + in_1"), "no product")

    def test_results_that_are_there_are_not_overwritten(self) -> None:
        with tempfile.NamedTemporaryFile() as there:
            command = [sys.executable, TOOL, "measure", "--passes", "passes", "--out", there.name, "task"]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 2)
        self.assertIn("is there already", done.stderr)


if __name__ == "__main__":
    unittest.main()
