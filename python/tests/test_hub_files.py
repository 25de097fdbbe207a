"""Rows of a hub dataset become files, and only below the folder that was named."""

import contextlib
import importlib.util
import io
import json
import tempfile
import unittest
from pathlib import Path

TOOL = Path(__file__).parents[2] / "tools" / "hub_files.py"
SPEC = importlib.util.spec_from_file_location("hub_files", TOOL)
hub_files = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(hub_files)


class HubFiles(unittest.TestCase):
    def run_on(self, rows, prepare=lambda out: None):
        """Exit code, what was said, and the files."""
        with tempfile.TemporaryDirectory() as folder:
            source, out = Path(folder) / "rows.jsonl", Path(folder) / "out"
            source.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
            out.mkdir()
            prepare(out)
            said = io.StringIO()
            with contextlib.redirect_stderr(said), contextlib.redirect_stdout(said):
                code = hub_files.main([str(source), "--out", str(out)])
            files = {str(p.relative_to(out)): p.read_bytes() for p in out.rglob("*") if p.is_file()}
            return code, said.getvalue(), files

    def test_rows_become_files_byte_for_byte(self):
        rows = [
            {"path": "graphs/set/g/model.py", "content": "import torch\n\n    \n"},
            {"path": "graphs/set/g/input_meta.py", "content": None},
            {"path": "samples/s/graph_list.txt", "content": "graphs/set/g\r\n"},
        ]
        code, _, files = self.run_on(rows)
        self.assertEqual(code, 0)
        self.assertEqual(files["graphs/set/g/model.py"], b"import torch\n\n    \n")
        self.assertEqual(files["graphs/set/g/input_meta.py"], b"")
        self.assertEqual(files["samples/s/graph_list.txt"], b"graphs/set/g\r\n")

    def test_hostile_paths_are_refused(self):
        for path in ["/etc/x", "../x", "a/../../x", "", None, 7]:
            code, said, files = self.run_on([{"path": path, "content": "x"}])
            self.assertEqual((code, files), (2, {}), path)
            self.assertIn("error: ", said)
        code, said, _ = self.run_on(
            [{"path": "link/x", "content": "x"}], lambda out: (out / "link").symlink_to("/tmp")
        )
        self.assertEqual(code, 2)
        self.assertIn("leads through a link", said)


if __name__ == "__main__":
    unittest.main()
