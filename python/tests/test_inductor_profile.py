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
    for graph, size in (("small", 2), ("middle", 30), ("large", 400)):
        os.makedirs(out + "/samples/a/graphs/" + graph)
        meta = "class W:\\n    shape = [" + str(size) + "]\\n    dtype = 'torch.float32'\\n"
        open(out + "/samples/a/graphs/" + graph + "/input_meta.py", "w").write(meta)
    open(out + "/samples/a/graph_list.txt", "w").write("graphs/small\\ngraphs/middle\\ngraphs/large\\n")
    sys.exit(0)
mode, shard = given[given.index("--mode") + 1], given[given.index("--shard") + 1]
part = str(int(shard.split("/")[0]) % 2)
with open("{calls}", "a") as calls:
    calls.write(mode + " " + (part if shard.endswith("/2") else shard) + "\\n")
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

    def test_some_graphs_of_a_task_are_judged_after_several_processes_compiled_them(self) -> None:
        with tempfile.TemporaryDirectory() as place:
            folder = Path(place)
            program, calls, out = (folder / name for name in ("passnet", "calls", "out"))
            program.write_text(PROGRAM.format(python=sys.executable, calls=calls, hang=folder / "hang"))
            program.chmod(0o755)
            command = [sys.executable, str(TOOL), "set.pnds", str(out), "--passnet", str(program), "--parts", "2"]
            command += ["--modes", "default", "--graphs", "2", "--jobs", "3"]
            subprocess.run(command, capture_output=True, timeout=60, check=True)

            kept = (out / "tasks/samples/a/graph_list.txt").read_text().split()
            self.assertEqual((len(kept), kept[0]), (2, "graphs/large"))
            # Parts of a part hold together what the part holds: what is 0, 2 or 4 modulo 6 is even.
            called = [line.removeprefix("default ") for line in calls.read_text().splitlines()]
            self.assertEqual([sorted(called[:3]), called[3]], [["0/6", "2/6", "4/6"], "0"])
            self.assertEqual([sorted(called[4:7]), called[7]], [["1/6", "3/6", "5/6"], "1"])
            told = json.loads((out / "profile.json").read_text())
            self.assertEqual(told["speedups"], {"a/g0": {"default": 0.5}, "b/g0": {"default": 2.0}}, "what compiled is not counted")


if __name__ == "__main__":
    unittest.main()
