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

from figure_list import FIGURES, HEADLINE, markdown, refusals  # noqa: E402


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
