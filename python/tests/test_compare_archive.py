"""What an archive records is read as it is, and every disagreement has one cause."""

import importlib.machinery
import importlib.util
import json
import sys
import tempfile
import unittest
from pathlib import Path

TOOL = Path(__file__).parents[2] / "tools" / "compare_archive"
LOADER = importlib.machinery.SourceFileLoader("compare_archive", str(TOOL))
compare_archive = importlib.util.module_from_spec(importlib.util.spec_from_loader("compare_archive", LOADER))
sys.modules["compare_archive"] = compare_archive
sys.dont_write_bytecode, before = True, sys.dont_write_bytecode
LOADER.exec_module(compare_archive)
sys.dont_write_bytecode = before


def result(verdict, message="", score=1.0, graph="g", sample="s"):
    return compare_archive.Result(sample, graph, f"{sample} {graph}", score, verdict, message)


def review(cause, why, message="", sample=""):
    patterns = (compare_archive.re.compile(text) for text in (sample, "", message))
    return compare_archive.Review(*patterns, cause, why)


class Scores(unittest.TestCase):
    def recorded(self, files):
        with tempfile.TemporaryDirectory() as folder:
            for name, text in files.items():
                path = Path(folder) / name
                path.parent.mkdir(exist_ok=True)
                path.write_text(text)
            return compare_archive.recorded_score(Path(folder))

    def test_scores_are_found_in_each_form(self):
        self.assertEqual(self.recorded({"pass_dir/score.txt": "0.75\n"}), 0.75)
        self.assertEqual(self.recorded({"aggregated_score.json": '{"id": 1, "score": 1.5}'}), 1.5)
        self.assertEqual(self.recorded({"pass_dir/aggregated_score.json": '{"score": 2}'}), 2)

    def test_what_is_no_score_is_none(self):
        for text in ("", "good", "nan", "inf"):
            self.assertIsNone(self.recorded({"pass_dir/score.txt": text}), text)
        for text in ("", "[1]", '{"score": true}', '{"score": [1]}', "{}"):
            self.assertIsNone(self.recorded({"aggregated_score.json": text}), text)
        self.assertIsNone(self.recorded({"pass_dir/other.txt": "1"}))


class Causes(unittest.TestCase):
    def cause(self, found, crowded=True, reviews=()):
        return compare_archive.cause(found, crowded, list(reviews))

    def test_every_verdict_but_a_good_one_has_a_cause(self):
        for verdict, expected in compare_archive.CAUSE_OF.items():
            self.assertEqual(self.cause(result(verdict))[0], expected)
        self.assertEqual(self.cause(result("a_verdict_of_tomorrow"))[0], "our mistake")

    def test_a_broken_rule_is_named(self):
        found = result("integrity", "cached-state: returns what `KEPT` keeps")
        self.assertEqual(self.cause(found), ("their cheat", "rule cached-state"))

    def test_a_score_leaves_room_for_failures(self):
        # Two graphs of four, the others as fast as eager: 0.1 ** 0.5.
        self.assertEqual([compare_archive.room(score, 4) for score in (1.2, 1.0, 0.57, 0.32, 0.31)], [0, 0, 0, 1, 2])
        self.assertEqual(compare_archive.room(0.0, 4), 4)
        self.assertEqual(self.cause(result("no_match"), crowded=False)[0], "room in the record")
        self.assertEqual(self.cause(result("integrity", "r: m"), crowded=False)[0], "their cheat")

    def test_the_first_review_that_fits_decides(self):
        reviews = [
            review("their luck", "strides", message="^shape_mismatch: .*strides"),
            review("our mistake", "the rest"),
        ]
        self.assertEqual(
            self.cause(result("shape_mismatch", "output 0 has the strides [1]"), reviews=reviews),
            ("their luck", "strides"),
        )
        self.assertEqual(self.cause(result("accuracy"), reviews=reviews), ("our mistake", "the rest"))

    def test_only_good_records_disagree(self):
        judged = [
            [result("no_match", score=0.4, sample="low")],
            [result("correct", graph="a"), result("no_match", graph="b")],
            [],
        ]
        rows = compare_archive.disagreements(judged, 0.5, [])
        self.assertEqual([(row.sample, row.graph, row.cause) for row in rows], [("s", "b", "our mistake")])

    def test_messages_hold_no_paths(self):
        rule = {"kind": "rule", "rule": "no-kernel", "file": "/home/someone/p.py", "line": 3, "message": "no kernel"}
        values = {"kind": "values", "output": 0, "elements": 8, "wrong": 3}
        other = {"kind": "odd", "file": "/home/someone/p.py", "count": 2}
        said = [compare_archive.first_message(evidence) for evidence in ([rule], [values], [other], [])]
        self.assertEqual(said[:2], ["no-kernel: no kernel", "3 of 8 elements of output 0 are wrong"])
        self.assertEqual(json.loads(said[2]), {"kind": "odd", "count": 2})
        self.assertEqual(said[3], "")


if __name__ == "__main__":
    unittest.main()
