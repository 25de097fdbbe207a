"""`tools/kernel_instructions.py` on a bundled task; needs PyTorch with Triton, no GPU. A script stands in for `passnet`."""

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
TASK = ROOT / "bench/tasks/rms_norm_gate"
ROW = re.compile(r"\| rms_norm_gat 0 \| ([\d.]+) \| 1 \| (\d+) \| \d+ \| 256 \| 1 \| (\d+) \| \d+ \| \d+ \|")


def plan() -> dict[str, object]:
    """What `passnet kernel plan --json` says of the bundled pass for the task's first graph."""

    def buffer(name: str, elements: int) -> dict[str, object]:
        return {"name": name, "value": {"buffer": {"offset": 0, "shape": [elements], "stride": [1], "dtype": "float32"}}}

    arguments = [buffer("x_ptr", 262144), buffer("gate_ptr", 262144), buffer("weight_ptr", 1024), buffer("out_ptr", 262144)]
    arguments.append({"name": "width", "value": {"int": {"value": 1024, "elem": "I32"}}})
    arguments.append({"name": "BLOCK", "value": {"const": {"int": 1024}}})
    launch = {"kernel": "rms_norm_gate_kernel", "grid": [256, 1, 1], "args": arguments}
    launch |= {"num_warps": 4, "num_stages": 3, "enable_fp_fusion": True}
    return {"sites": 1, "plan": {"steps": [{"launch": launch}]}}


@unittest.skipUnless(
    all(importlib.util.find_spec(name) for name in ("torch", "triton")), "PyTorch or Triton is not installed"
)
class Instructions(unittest.TestCase):
    def compared(self, line: str) -> subprocess.CompletedProcess[str]:
        with tempfile.TemporaryDirectory() as place:
            passnet = Path(place) / "passnet"
            passnet.write_text(f"#!/bin/sh\ncat <<'END'\n{line}\nEND\n")
            passnet.chmod(0o755)
            command = [sys.executable, ROOT / "tools/kernel_instructions.py", "--passnet", passnet]
            command += ["--passes", ROOT / "bench/passes", "--part", "0/4", TASK]
            return subprocess.run(command, capture_output=True, text=True, check=False)

    def test_where_no_pass_matches_nothing_is_compared_and_that_is_said(self) -> None:
        done = self.compared('{"sites": 0}')
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        self.assertIn("0 graphs that could not be compiled here, 1 without kernels on one side", done.stdout)

    def test_both_sides_are_compiled_and_counted(self) -> None:
        done = self.compared(json.dumps(plan()))
        self.assertEqual(done.returncode, 0, done.stderr)
        row = ROW.search(done.stdout)
        self.assertIsNotNone(row, done.stdout + done.stderr)
        ratio, ours, theirs = (float(number) for number in row.groups())
        # Thousands are rounded.
        self.assertGreater(ours, 10)
        self.assertAlmostEqual(ratio, ours / theirs, delta=0.02)
        self.assertIn("1 graphs with kernels of both", done.stdout)


if __name__ == "__main__":
    unittest.main()
