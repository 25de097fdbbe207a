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

EAGER = {"name": "eager"}

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
    shared = ()

    def setUp(self):
        from passnet.worker import frames

        self.frames = frames
        arguments = ["--device", "cpu", "--threads", "1"]
        if self.shared:
            arguments += ["--shared-memory", *(file.name for file in self.shared)]
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

    def ask(self, message, tensors=()):
        """One request; gives the reply and its raw bytes."""
        from passnet.worker.tensors import to_wire

        self.id += 1
        parts, entries, at = [], [], 0
        for tensor in tensors:
            entry = to_wire(tensor, parts, at)
            at += entry["bytes"][1]
            entries.append(entry)
        if tensors:
            message["inputs"] = entries
        to_worker, from_worker = (file.fileno() for file in self.shared) if self.shared else (None, None)
        self.frames.write_frame(self.process.stdin, {**message, "id": self.id}, parts, to_worker)
        reply, data = self.frames.read_frame(self.process.stdout, shared=from_worker)
        self.assertEqual(reply["id"], self.id)
        return reply, data

    def loaded(self):
        self.load(GRAPH, writes_inputs=False)

    def load(self, text, writes_inputs, number=1):
        request = {"call": "load", "graph": number, "text": text, "plans": 0, "compiler": EAGER}
        reply, _ = self.ask({**request, "writes_inputs": writes_inputs})
        self.assertTrue(reply["ok"], reply)

    def test_a_graph_runs_as_in_torch(self):
        from passnet.worker.tensors import from_wire

        reply, _ = self.ask({"call": "hello", "version": self.frames.VERSION})
        self.assertEqual(reply["torch"], torch.__version__)
        self.loaded()
        x, y = torch.randn(3, 5), torch.randn(3, 5)
        reply, data = self.ask({"call": "run", "graph": 1, "seed": 1}, [x, y])
        first, second = reply["outputs"]
        got = from_wire(first, memoryview(data), torch.device("cpu"))
        self.assertTrue(torch.equal(got, torch.relu(x * y)))
        self.assertEqual((first["input"], second["input"]), (None, 0), "the second output is the first input")
        self.assertEqual(reply["changed"], [])

    def timed(self, candidate, inputs, writes_inputs=False, changed=None):
        """What is said of one call of a candidate and one of eager on the same content."""
        self.load(GRAPH if changed is None else changed, writes_inputs)
        self.load(candidate, writes_inputs, number=2)
        tolerances = {"float32": [[10.0**t, 10.0**t] for t in range(-10, 6)]}
        self.ask({"call": "stage", "graph": 1, "draw": 0, "tolerances": tolerances}, inputs)
        content = {"draw": 0, "by": [1] * len(inputs)}
        turn = {"number": 7, "content": content, "level": None}
        turns = [
            {**turn, "graph": 2, "is_candidate": True},
            {**turn, "graph": 1, "is_candidate": False, "level": -10},
        ]
        reply, _ = self.ask({"call": "calls", "staged": 1, "turns": turns, "seed": 1})
        self.assertTrue(reply["ok"], reply)
        self.assertGreater(min(reply["seconds"]), 0.0)
        return reply["compared"]

    def test_timed_calls_of_both_sides_are_compared(self):
        inputs = [torch.randn(3, 5), torch.randn(3, 5)]
        self.assertEqual(self.timed(GRAPH, inputs), [None, {"right_from": -10}])
        near = GRAPH.replace("x * y", "x * y * 1.00001")
        compared = self.timed(near, inputs)
        self.assertIn(compared[1]["right_from"], range(-9, 0))
        reply, _ = self.ask({"call": "doubtful"})
        self.assertEqual(reply["number"], 7, "the other side may look at it more closely")
        self.assertEqual(self.timed(GRAPH.replace("x * y", "x - y + 1e9"), inputs)[1], {"wrong": True})

    def test_a_candidate_that_changes_its_input_is_found(self):
        inputs = [torch.randn(3, 5), torch.randn(3, 5)]
        changing = GRAPH.replace("x * y", "y.mul_(x)")
        self.assertEqual(self.timed(changing, inputs)[0], {"input_changed": 1})

    def test_a_graph_that_changes_its_inputs_is_compared_by_them_too(self):
        inputs = [torch.ones(3), torch.ones(3)]
        changing = GRAPH.replace("x * y", "x.add_(y)")
        forgetful = GRAPH.replace("x * y", "x + y")
        self.assertEqual(self.timed(changing, inputs, True, changing), [None, {"right_from": -10}])
        compared = self.timed(forgetful, inputs, True, changing)[1]
        self.assertNotEqual(compared, {"right_from": -10}, "the input is left as it was")

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

        graph = Graph(GRAPH, 0, EAGER, torch.device("cpu"), lambda *_: None, None)
        graph.seed(7)
        drawn = torch.randn(5)
        torch.manual_seed(7)
        self.assertTrue(torch.equal(drawn, torch.randn(5)))

    def test_every_content_is_rolled_into_memory_of_its_own(self):
        from passnet.worker.graphs import Graph

        graph = Graph(GRAPH, 0, EAGER, torch.device("cpu"), lambda *_: None, None)
        graph.draws[0] = [torch.arange(6).view(2, 3), 7]
        one, two = (graph.content({"draw": 0, "by": [by, 0]}, None) for by in (1, 1))
        self.assertEqual(one[0].tolist(), [[5, 0, 1], [2, 3, 4]])
        self.assertEqual(one[1], 7)
        self.assertTrue(torch.equal(one[0], two[0]))
        self.assertNotEqual(one[0].data_ptr(), two[0].data_ptr())

    def test_what_a_graph_raises_is_its_result_and_the_worker_goes_on(self):
        self.loaded()
        reply, _ = self.ask({"call": "run", "graph": 1, "seed": 1}, [torch.ones(3), torch.ones(4)])
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
        self.shared = [tempfile.NamedTemporaryFile(), tempfile.NamedTemporaryFile()]
        for file in self.shared:
            self.addCleanup(file.close)
        super().setUp()


if __name__ == "__main__":
    unittest.main()
