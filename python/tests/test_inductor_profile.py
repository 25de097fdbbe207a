"""The profile of TorchInductor goes on where it was stopped, and sums up what every mode has; no PyTorch, a stand-in for the program."""

import json
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

TOOL = Path(__file__).parents[2] / "tools/inductor_profile.py"
# Two tasks; the first part has one graph, the second the other. `max-autotune` hangs in the second while a file says so.
PROGRAM = '''#!{python}
import json, os, sys, time
given = sys.argv[1:]
out = given[given.index("--out") + 1]
if given[:2] == ["dataset", "export"]:
    os.makedirs(out + "/sample_lists")
    open(out + "/sample_lists/fusible_eval.txt", "w").write("samples/a\\nsamples/b\\n")
    sys.exit(0)
mode, part = given[given.index("--mode") + 1], given[given.index("--shard") + 1][0]
with open("{calls}", "a") as calls:
    calls.write(mode + " " + part + "\\n")
if mode == "max-autotune" and part == "1" and os.path.exists("{hang}"):
    time.sleep(600)
os.makedirs(out, exist_ok=True)
start = dict(event="start", identity=dict(torch="2.11"), machine=dict(threads=2), options={{}})
graph = dict(event="graph", sample="ab"[int(part)], graph="graphs/g0", verdict="correct", speedup=0.5 if part == "0" else 2.0)
with open(out + "/events.jsonl", "w") as events:
    events.write(json.dumps(start) + "\\n" + json.dumps(graph) + "\\n")
'''


class Profile(unittest.TestCase):
    def test_it_goes_on_and_counts_what_every_mode_has(self) -> None:
        with tempfile.TemporaryDirectory() as place:
            folder = Path(place)
            program, calls, hang, out = (folder / name for name in ("passnet", "calls", "hang", "out"))
            program.write_text(PROGRAM.format(python=sys.executable, calls=calls, hang=hang))
            program.chmod(0o755)
            hang.touch()

            def run(minutes: str) -> tuple[int, dict]:
                command = [sys.executable, str(TOOL), "set.pnds", str(out), "--passnet", str(program), "--parts", "2"]
                done = subprocess.run([*command, "--minutes", minutes], capture_output=True, text=True, timeout=60, check=False)
                return done.returncode, json.loads((out / "profile.json").read_text())

            # Time is up in the second part: the first one counts alone.
            code, told = run("0.05")
            self.assertEqual((code, told["parts"]), (3, [1, 2]))
            self.assertEqual(told["modes"]["default"]["fusible"]["slower"], 1)
            self.assertEqual(told["speedups"], {"a/g0": {mode: 0.5 for mode in told["modes"]}})

            hang.unlink()
            before = calls.read_text().split("\n")
            code, told = run("1")
            self.assertEqual((code, told["parts"]), (0, [2, 2]))
            again = calls.read_text().split("\n")[len(before) - 1 : -1]
            self.assertEqual(again, ["max-autotune 1"], "what was done is not done again")
            self.assertAlmostEqual(told["modes"]["max-autotune"]["all"]["geometric_mean"], 1.0)
            self.assertEqual(told["modes"]["max-autotune"]["all"]["faster"], 1)
            self.assertEqual(told["measured_with"]["identity"], {"torch": "2.11"})


if __name__ == "__main__":
    unittest.main()
