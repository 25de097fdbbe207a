"""The pages that `tools/figures` writes follow from the results, and a page that somebody edited is told."""

import json
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

from figure_list import (  # noqa: E402
    FIGURES,
    HEADLINE,
    Place,
    Unmeasured,
    markdown,
    models_on_cpu,
    models_on_gpu,
    refusals,
)


class Figures(unittest.TestCase):
    def copy(self) -> Path:
        """What the command reads, in a folder of its own."""
        folder = Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, folder)
        (folder / "tools").mkdir()
        for name in ("tools/figures", "tools/figure_list.py", "README.md", "README.zh.md"):
            shutil.copy(ROOT / name, folder / name)
        shutil.copytree(ROOT / "docs/figures", folder / "docs/figures")
        return folder

    def call(self, folder: Path, *arguments: str) -> subprocess.CompletedProcess:
        return subprocess.run([sys.executable, folder / "tools/figures", *arguments], capture_output=True, text=True)

    def test_pages_are_what_the_results_give_until_somebody_edits(self) -> None:
        folder = self.copy()
        self.assertEqual(self.call(folder).returncode, 0)
        self.assertEqual(self.call(folder, "--check").returncode, 0)
        page = folder / "docs/figures.md"
        page.write_text(page.read_text() + "AS 9.9\n")
        told = self.call(folder, "--check")
        self.assertEqual((told.returncode, told.stdout), (1, "figures.md is not what the results give: call tools/figures\n"))

    def test_a_changed_result_changes_the_readme(self) -> None:
        folder = self.copy()
        path = folder / "docs/figures/learning.json"
        result = json.loads(path.read_text())
        result["values"]["after"] = "0.999"
        path.write_text(json.dumps(result))
        self.assertEqual(self.call(folder, "--check").returncode, 1)
        self.assertEqual(self.call(folder).returncode, 0)
        for readme in ("README.md", "README.zh.md"):
            self.assertIn("0.999", (folder / readme).read_text())

    def test_a_result_without_a_figure_is_told(self) -> None:
        folder = self.copy()
        self.call(folder)
        (folder / "docs/figures/mine.json").write_text("{}")
        told = self.call(folder, "--check")
        self.assertEqual(told.returncode, 1)
        self.assertIn("mine.json belongs to no figure", told.stdout)

    def test_tables_of_a_command_are_told_apart(self) -> None:
        found = markdown("| a | b |\n|---|---|\n| 1 | 2 |\n\nwords\n| c |\n|---|\n| 3 |\n")
        self.assertEqual(found, [{"columns": ["a", "b"], "rows": [["1", "2"]]}, {"columns": ["c"], "rows": [["3"]]}])

    def models(self, *lines: dict) -> Place:
        """A table of models in a file."""
        path = self.copy() / "table.jsonl"
        path.write_text("".join(json.dumps(line) + "\n" for line in lines))
        return Place("passnet", "python3", None, [path])

    def model(self, name: str, **times: float) -> dict:
        known = {"right": True, "chosen": ["eager"]}
        ways = [{"way": way.replace("_", "-"), "ms": ms, "processor_ms": ms + 1, **known} for way, ms in times.items()]
        device = {"kind": "cpu", "name": "a processor"}
        build = {"version": "0.1.0", "commit": "0123456789abcdef"}
        identity = {"device": device, "build": build, "cores": 2, "torch": "2.15"}
        return {"name": name, "batch": 1, "device": "cpu", "torch": "2.15", "identity": identity, "ways": ways}

    def test_models_on_a_cpu_are_held_against_eager_and_inductor(self) -> None:
        lines = [
            self.model("one", eager=2.0, inductor=8.0, passnet_fastest=1.0, passnet_fastest_freezing=0.5),
            self.model("two", eager=2.0, inductor=2.0, passnet_fastest=1.0, passnet_fastest_freezing=0.5),
        ]
        found = models_on_cpu(self.models(*lines))
        fastest = {"eager_ms": "2.00", "inductor_ms": "4.00", "eager_processor_ms": "1.50", "inductor_processor_ms": "2.60"}
        freezing = {"eager_ms": "4.00", "inductor_ms": "8.00", "eager_processor_ms": "2.00", "inductor_processor_ms": "3.46"}
        values = {f"passnet-fastest_{name}": value for name, value in fastest.items()}
        values |= {f"passnet-fastest-freezing_{name}": value for name, value in freezing.items()}
        self.assertEqual(found["values"], {"models": "2", **values})
        known = {"device": "2 cores of a processor", "build": "0.1.0 0123456789", "torch": "2.15"}
        self.assertLessEqual(known.items(), found["identity"].items())
        self.assertEqual(found["tables"][0]["rows"][0], ["one", "1", "2.00", "8.00", "-", "1.00", "0.50", "eager; eager", "yes"])

    def test_models_that_were_cut_off_are_no_part_of_a_mean(self) -> None:
        whole = self.model("one", eager=4.0, inductor_reduce_overhead=3.0, passnet_fastest=2.0)
        cut = self.model("two", eager=4.0, passnet_fastest=2.0)
        cut["ways"].append({"way": "inductor-reduce-overhead", "ms": None, "right": None, "chosen": None})
        del whole["identity"], cut["identity"]
        found = models_on_gpu(self.models(whole, cut))
        self.assertEqual(found["values"], {"one": "1.50", "sixteen": "-"})
        self.assertEqual(found["identity"]["build"], "not recorded")
        with self.assertRaises(Unmeasured):
            models_on_gpu(self.models())

    def test_what_fastest_costs_stands_beside_its_times(self) -> None:
        ways = {"eager": 4.0, "inductor": 3.0, "inductor_reduce_overhead": 2.0, "passnet_fastest": 1.0}
        lines = [self.model("one", **ways), self.model("two", **ways)]
        for line, (seconds, memory, known) in zip(lines, ((5.0, 120.0, True), (40.0, 90.0, False))):
            for timed in line["ways"]:
                is_ours = timed["way"] == "passnet-fastest"
                timed |= {"compile_seconds": seconds if is_ours else 10.0, "memory": memory if is_ours else 100.0}
                timed["known"] = known if is_ours else None
        table = models_on_gpu(self.models(*lines))["tables"][0]
        self.assertNotIn("passes in a CUDA graph", table["columns"])
        costs = ["compiling / Inductor", "compiling / reduce-overhead", "memory / eager"]
        self.assertEqual(table["columns"][-3:], costs)
        self.assertEqual([row[-3:] for row in table["rows"][:2]], [["0.50", "0.50", "1.20"], ["-", "-", "0.90"]])
        self.assertEqual(table["rows"][2][-3:], ["**0.50** of 1", "**0.50** of 1", "**1.04** of 2"])

    def test_the_page_says_how_each_figure_is_made(self) -> None:
        folder = self.copy()
        self.call(folder)
        page = (folder / "docs/figures.md").read_text()
        for name in (path.stem for path in (folder / "docs/figures").glob("*.json")):
            self.assertRegex(page, rf"made by `tools/figures (measure|take) {name}[ `]")

    def test_a_figure_of_files_says_which_it_wants(self) -> None:
        told = self.call(self.copy(), "measure", "solver-h200")
        self.assertEqual(told.returncode, 1)
        self.assertIn("`tools/figures take solver-h200 RUN_OF_PASSES RUN_OF_INDUCTOR`", told.stderr)

    def test_refused_graphs_stand_with_their_reason(self) -> None:
        lines = [{"path": "fine", "ok": True}]
        for path, count in (("a", 3), ("b", 40)):
            error = {"file": f"{path}/weight_meta.py", "message": f"the graph has {count} inputs"}
            lines.append({"path": path, "ok": False, "errors": [error]})
        self.assertEqual(refusals(lines), {"`weight_meta.py`: the graph has N inputs": ["`a`", "`b`"]})

    def test_every_headline_has_a_figure(self) -> None:
        self.assertLessEqual(set(HEADLINE), {figure.name for figure in FIGURES})


if __name__ == "__main__":
    unittest.main()
