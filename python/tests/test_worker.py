"""The worker as a process, spoken to in frames: `python -m unittest tests.test_worker` (needs PyTorch)."""

import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

try:
    import torch
except ImportError:
    torch = None

ROOT = Path(__file__).resolve().parents[1]

GRAPH = """import torch

class GraphModule(torch.nn.Module):

    def forward(self, x, y):
        tmp_0 = x * y
        tmp_1 = torch.nn.functional.relu(tmp_0, inplace=False)
        tmp_0 = None
        return (tmp_1, x)
"""


@unittest.skipIf(torch is None, "PyTorch is not installed")
class WorkerTest(unittest.TestCase):
    areas = ()

    def setUp(self):
        from passnet.worker import frames

        self.frames = frames
        arguments = ["--device", "cpu", "--threads", "1"]
        if self.areas:
            arguments += ["--areas", *(area.name for area in self.areas)]
        self.process = subprocess.Popen(
            [sys.executable, "-m", "passnet.worker", *arguments],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        self.id = 0

    def tearDown(self):
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            pipe.close()

    def ask(self, message, tensors=(), expected=()):
        """One request; gives the reply and its raw bytes."""
        from passnet.worker.tensors import to_wire

        self.id += 1
        parts, entries, at = [], [], 0
        for tensor in (*tensors, *expected):
            entry = to_wire(tensor, parts, at)
            at += entry["bytes"][1]
            entries.append(entry)
        if tensors:
            message["inputs"] = entries[: len(tensors)]
        if expected:
            message["expected"] = entries[len(tensors) :]
        to_worker, from_worker = (area.fileno() for area in self.areas) if self.areas else (None, None)
        self.frames.write_frame(self.process.stdin, {**message, "id": self.id}, parts, to_worker)
        reply, data = self.frames.read_frame(self.process.stdout, area=from_worker)
        self.assertEqual(reply["id"], self.id)
        return reply, data

    def loaded(self):
        self.load(GRAPH, writes_inputs=False)

    def load(self, text, writes_inputs):
        request = {"call": "load", "graph": 1, "text": text, "plans": 0, "compiler": {"name": "eager"}}
        reply, _ = self.ask({**request, "writes_inputs": writes_inputs})
        self.assertTrue(reply["ok"], reply)

    def test_a_graph_runs_as_in_torch(self):
        from passnet.worker.tensors import from_wire

        reply, _ = self.ask({"call": "hello", "version": self.frames.VERSION})
        self.assertEqual(reply["torch"], torch.__version__)
        self.loaded()
        x, y = torch.randn(3, 5), torch.randn(3, 5)
        reply, data = self.ask({"call": "run", "graph": 1, "seed": 1, "poison": False}, [x, y])
        first, second = reply["outputs"]
        got = from_wire(first, memoryview(data), torch.device("cpu"))
        self.assertTrue(torch.equal(got, torch.relu(x * y)))
        self.assertEqual((first["input"], second["input"]), (None, 0), "the second output is the first input")
        self.assertEqual(reply["changed"], [])

    def test_timed_calls_are_compared_with_what_was_verified(self):
        self.loaded()
        x, y = torch.randn(3, 5), torch.randn(3, 5)
        self.ask({"call": "stage", "graph": 1, "draw": 0, "expected": []}, [x, y])
        calls = {"call": "calls", "staged": 1, "graphs": [1, 1], "draws": [0, 0], "seed": 1}
        reply, _ = self.ask(calls)
        self.assertGreater(min(reply["seconds"]), 0.0)
        self.assertEqual(reply["different"], [None, None])

    def test_a_graph_that_changes_its_inputs_gets_copies(self):
        text = GRAPH.replace("x * y", "x.add_(y)")
        self.load(text, writes_inputs=True)
        x, y = torch.ones(3), torch.ones(3)
        self.ask({"call": "stage", "graph": 1, "draw": 0}, [x, y], expected=[x + y, x + y])
        reply, _ = self.ask({"call": "calls", "staged": 1, "graphs": [1] * 9, "draws": [0] * 9, "seed": 1})
        self.assertEqual(reply["different"], [None] * 9)

    def test_bits_are_compared_whatever_the_strides(self):
        from passnet.worker.tensors import same_bits

        table = torch.arange(21).view(3, 7)
        self.assertTrue(same_bits(table[:1, 2], torch.tensor([2])), "one element, seven apart from the next")
        self.assertTrue(same_bits(table.t(), table.t().contiguous()))
        self.assertFalse(same_bits(table[:2, 2], torch.tensor([2, 8])))
        nan = torch.tensor([float("nan"), 0.0])
        self.assertTrue(same_bits(nan, nan.clone()))
        self.assertFalse(same_bits(nan, -nan), "zeros of other signs")
        for dtype in (torch.bool, torch.float16, torch.complex64, torch.complex128):
            values = torch.ones(3).to(dtype)
            self.assertTrue(same_bits(values, values.clone()), dtype)
            self.assertFalse(same_bits(values, torch.zeros(3).to(dtype)), dtype)
        self.assertTrue(same_bits(torch.empty(0, 3), torch.empty(0, 3)))

    def test_a_seed_gives_what_torch_draws_from_it(self):
        from passnet.worker.graphs import Graph

        graph = Graph(GRAPH, 0, "eager", torch.device("cpu"), lambda *_: None, None)
        graph.seed(7)
        drawn = torch.randn(5)
        torch.manual_seed(7)
        self.assertTrue(torch.equal(drawn, torch.randn(5)))

    def test_calls_find_their_inputs_in_another_place_each_time(self):
        from passnet.worker.graphs import PLACES, Draw

        draw = Draw([torch.ones(4), 7], [])
        places = [draw.take(copy=False)[0].data_ptr() for _ in range(2 * PLACES)]
        self.assertEqual(len(set(places)), PLACES)
        self.assertTrue(all(one != two for one, two in zip(places, places[1:], strict=False)))

    def test_what_a_graph_raises_is_its_result_and_the_worker_goes_on(self):
        self.loaded()
        reply, _ = self.ask({"call": "run", "graph": 1, "seed": 1, "poison": False}, [torch.ones(3), torch.ones(4)])
        self.assertFalse(reply["ok"])
        self.assertIn("size of tensor", reply["message"])
        self.assertGreater(reply["line"], 0)
        reply, _ = self.ask({"call": "no such call"})
        self.assertFalse(reply["ok"])
        self.loaded()

    def test_other_bytes_than_frames_end_it(self):
        self.process.stdin.write(b"GET / HTTP/1.1\r\n\r\n" * 4)
        self.process.stdin.flush()
        self.assertNotEqual(self.process.wait(timeout=60), 0)


class WorkerWithAreasTest(WorkerTest):
    """All the same where raw bytes lie in memory that both sides reach."""

    def setUp(self):
        self.areas = [tempfile.NamedTemporaryFile(), tempfile.NamedTemporaryFile()]
        for area in self.areas:
            self.addCleanup(area.close)
        super().setUp()


if __name__ == "__main__":
    unittest.main()
