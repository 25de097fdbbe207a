"""The record of captures counts graphs over runs that never met; no PyTorch, a stand-in for the program."""

import json
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

TOOL = Path(__file__).parents[2] / "tools/capture_record.py"
# `graph hash --json` says what each folder's `digests.json` holds.
PROGRAM = '''#!{python}
import pathlib, sys
assert sys.argv[1:4] == ["graph", "hash", "--json"], sys.argv
for file in sorted(pathlib.Path(sys.argv[4]).rglob("digests.json")):
    print(file.read_text().replace("HERE", str(file.parent)))
'''


def extraction(folder: Path, models: dict[str, list[str] | str]) -> Path:
    """Results of an extraction: models with the digests of their graphs, or with the kind of their failure."""
    folder.mkdir()
    lines = []
    for model, found in models.items():
        if isinstance(found, str):
            lines.append({"id": model, "source": "zoo", "outcome": "failed", "kind": found})
            continue
        lines.append({"id": model, "source": "zoo", "outcome": "captured", "cpu_seconds": 2.0, "peak_mb": 700})
        for index, digest in enumerate(found):
            graph = folder / "samples" / model / f"subgraph_{index}"
            graph.mkdir(parents=True)
            said = {"path": "HERE", "structure": digest[:1] * 64, "literals": digest * 32, "full": f"{model[-1]}{digest}" * 21}
            (graph / "digests.json").write_text(json.dumps(said))
    text = "".join(json.dumps(line) + "\n" for line in lines)
    (folder / "results.jsonl").write_text(text + '{"id": "zoo/tor')
    return folder


class Record(unittest.TestCase):
    def setUp(self) -> None:
        self.held = tempfile.TemporaryDirectory()
        self.folder = Path(self.held.name)
        self.program, self.record = self.folder / "passnet", self.folder / "captures.csv"
        self.program.write_text(PROGRAM.format(python=sys.executable))
        self.program.chmod(0o755)

    def tearDown(self) -> None:
        self.held.cleanup()

    def tool(self, *given: object, code: int = 0) -> str:
        command = [sys.executable, str(TOOL), "--record", str(self.record), *map(str, given)]
        done = subprocess.run(command, capture_output=True, text=True)
        self.assertEqual(done.returncode, code, done.stderr)
        return done.stdout + done.stderr

    def add(self, folder: Path, run: str) -> str:
        return self.tool("add", folder, "--run", run, "--passnet", self.program)

    def test_two_runs_are_counted_together(self) -> None:
        first = extraction(self.folder / "first", {"zoo/a": ["ab", "cd"], "zoo/b": "time limit"})
        self.assertIn("2 models more, 2 in all", self.add(first, "first run"))
        once = self.record.read_text()
        second = extraction(self.folder / "second", {"zoo/c": ["ab"], "zoo/d": ["ae"]})
        self.add(second, "second run")
        table = self.tool("table")
        self.assertIn("| zoo | 4 | 3 | 4 | 2.0 |", table)
        self.assertIn("1 time limit", table)
        self.assertIn("| operations, flow, literals, shapes and dtypes | 4 |", table)
        self.assertIn("| operations, flow and literals | 3 |", table)
        self.assertIn("| operations and flow | 2 |", table)
        self.assertIn("second run: 2 models.", table)
        # The same results again change nothing, in whichever order.
        self.record.unlink()
        self.add(second, "second run")
        self.add(first, "first run")
        self.add(first, "first run")
        self.assertEqual(self.tool("table"), table)
        self.assertTrue(set(once.splitlines()) < set(self.record.read_text().splitlines()))

    def test_what_is_left_of_a_list(self) -> None:
        self.add(extraction(self.folder / "first", {"zoo/a": ["ab"], "zoo/b": "time limit"}), "run")
        lines = [json.dumps({"family": "zoo", "name": name, "source": "zoo", "options": {}}) for name in "abc"]
        (self.folder / "all.jsonl").write_text("\n".join(lines) + "\n")
        self.assertEqual(self.tool("left", self.folder / "all.jsonl").splitlines(), lines[2:])

    def test_the_page_on_extraction_has_what_the_record_gives(self) -> None:
        done = subprocess.run([sys.executable, str(TOOL), "table"], capture_output=True, text=True, check=True)
        page = (TOOL.parents[1] / "docs/extraction.md").read_text()
        rows = [line for line in done.stdout.splitlines() if line.startswith("|")]
        self.assertGreater(len(rows), 4)
        self.assertEqual([row for row in rows if row not in page], [])

    def test_what_an_extraction_or_a_list_cannot_hold_is_named_by_its_line(self) -> None:
        folder = extraction(self.folder / "first", {"zoo/a": ["ab"], "zoo/b": ["cd"]})
        results = folder / "results.jsonl"
        whole = results.read_text()
        results.write_text("{}\n" + whole)
        self.assertIn("results.jsonl:1: no line of an extraction", self.tool("add", folder, "--run", "run", "--passnet", self.program, code=1))
        results.write_text(whole)
        (folder / "samples/zoo/b/subgraph_0/digests.json").unlink()
        self.assertIn("`zoo/b` was captured, but", self.tool("add", folder, "--run", "run", "--passnet", self.program, code=1))
        self.assertFalse(self.record.exists(), "nothing of a refused extraction is kept")
        (self.folder / "all.jsonl").write_text('{"family": "zoo", "name": "a"}\n{"family": 1}\n')
        self.assertIn("all.jsonl:2: no line of a list", self.tool("left", self.folder / "all.jsonl", code=1))
        self.assertIn("error: ", self.tool("left", self.folder / "missing.jsonl", code=1))

    def test_what_it_refuses(self) -> None:
        self.assertIn("error: ", self.tool("add", self.folder, "--run", "run", code=1))
        self.assertIn("no record yet", self.tool("table", code=1))
        self.add(extraction(self.folder / "first", {"zoo/a": ["ab"]}), "run")
        whole = self.record.read_text()
        self.record.write_text(whole + "zoo/b,zoo,captured,many,700,,run\n")
        self.assertIn("captures.csv:4: no line of a record", self.tool("table", code=1))
        self.record.write_text(whole.replace("requirements ", "requirements of yesterday ", 1))
        self.assertIn("begin a new record", self.tool("table", code=1))


if __name__ == "__main__":
    unittest.main()
