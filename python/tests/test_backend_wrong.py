"""Passes that are wrong on purpose never change what a model gives: `python -m unittest tests.test_backend_wrong`
(needs PyTorch and the `passnet` program)."""

import unittest
import warnings
from pathlib import Path

from tests.backend_library import COUNTING, RIGHT, SECOND_CALL, WRONG, WRONG_SIZES, BackendCase, program
from tests.test_backend import torch

if torch is not None:
    from tests.test_backend import Model

# What runs beside the passes, and whether sizes are symbolic.
WAYS = (("eager", False), ("eager", True), ("inductor", True), ("fastest", False), ("fastest", True))


@unittest.skipIf(torch is None, "PyTorch is not installed")
@unittest.skipIf(program() is None, "the passnet program is not built")
class WrongPassTest(BackendCase):
    def outputs(self, model, compiled, *sizes, calls=30):
        """Whether every output is eager's, on fresh inputs; what was said meanwhile."""
        from passnet.backend import PassWarning

        right = True
        with torch.inference_mode(), warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            for size in sizes:
                for _ in range(calls):
                    x = torch.randn(size)
                    right &= torch.allclose(compiled(x), model(x), atol=1e-5, rtol=1e-5)
        return right, [str(warning.message) for warning in said if issubclass(warning.category, PassWarning)]

    def in_every_way(self, text, *sizes):
        """What was said in each way of compiling, once every output was found right."""
        from passnet.backend import DROPPED, passnet_backend

        self.library.add(text)
        told = []
        for rest, dynamic in WAYS:
            torch._dynamo.reset()
            DROPPED.reasons.clear()
            model = Model(depth=2)
            options = {"library": str(self.library.folder), "trust": "all", "measure": False, "rest": rest}
            compiled = torch.compile(model, backend=passnet_backend, options=options, dynamic=dynamic)
            right, said = self.outputs(model, compiled, *sizes, calls=5)
            self.assertTrue(right, (rest, dynamic))
            told.append(said)
        return told

    def test_wrong_numbers(self):
        for said in self.in_every_way(WRONG, (4, 32), (6, 32)):
            self.assertEqual(len(said), 1, said)
            self.assertRegex(said[0], "pass `.*/gelu_add` is dropped: output 0 is off by")

    def test_wrong_at_other_sizes_than_those_of_the_first_call(self):
        for said in self.in_every_way(WRONG_SIZES, (4, 32), (5, 32), (4, 32), (7, 32)):
            self.assertEqual(len(said), 1, said)

    def test_wrong_from_the_second_call_on_by_memory(self):
        # Memory that a kernel may read before it is written is the same in every call.
        self.in_every_way(SECOND_CALL, (4, 32), (6, 32))

    def test_wrong_from_the_second_call_on_by_counting(self):
        # The wrapper runs once for each kind of arguments, on shapes, and never sees a call.
        self.in_every_way(COUNTING, (4, 32), (6, 32), (4, 32))

    def test_the_attack_by_memory_works_where_nothing_stands_against_it(self):
        import sys

        from passnet.backend import passnet_backend  # noqa: F401 - loads the modules

        # The package has a function of this name.
        server = sys.modules["passnet.backend.server"]
        original = server.PlanAsker
        server.PlanAsker = lambda *given, fills: original(*given, fills=False)
        self.addCleanup(setattr, server, "PlanAsker", original)
        self.library.add(SECOND_CALL)
        model = Model()
        right, _ = self.outputs(model, self.compiled(model, verify="never"), (4, 32))
        self.assertFalse(right)

    def test_checked_at_every_call(self):
        self.library.add(WRONG_SIZES)
        model = Model()
        right, said = self.outputs(model, self.compiled(model, verify="always"), (4, 32), (6, 32))
        self.assertTrue(right)
        self.assertEqual(len(said), 1)

    def graph_of(self, forward, *inputs) -> Path:
        """A graph folder of a function."""
        from passnet.extract.capture import Captured
        from passnet.extract.folder import write_graph_folder
        from passnet.extract.fx_text import write_graph
        from passnet.extract.metadata import Describer

        folder = Path(self.library.place.name) / "graph"

        def backend(graph_module, _):
            written = write_graph(graph_module, list(inputs))
            write_graph_folder(folder, Captured(written), Describer(), {"model_name": "test"})
            return graph_module.forward

        torch.compile(forward, backend=backend)(*inputs)
        torch._dynamo.reset()
        return folder

    def test_the_judge_finds_what_one_call_does_not_show(self):
        from passnet.backend import report

        graph = self.graph_of(lambda x, y: torch.nn.functional.gelu(x) + y, torch.randn(4, 32), torch.randn(4, 32))
        # On ordinary values, these are right in a first call. (What a pass does at sizes that its graph does not promise is
        # advice to the judge; there, every first call with a size stands against it.)
        hidden = {
            "memory": SECOND_CALL,
            "large": RIGHT.replace("tl.store(out_ptr + at, out,", "tl.store(out_ptr + at, tl.where(x > 50.0, 0.0, out),"),
        }
        for name, text in hidden.items():
            self.library.add(text, name, graphs=graph)
        model = Model()
        right, said = self.outputs(model, self.compiled(model, trust="judged"), (4, 32), (5, 32), calls=3)
        self.assertTrue(right)
        self.assertEqual(said, [])
        found = report().as_dict()
        self.assertEqual(found["graphs"], [])
        reasons = {entry["pass"].split("/")[1]: entry["reason"] for graph in found["left"] for entry in graph["passed_over"]}
        self.assertEqual(set(reasons), set(hidden))
        for name, reason in reasons.items():
            self.assertRegex(reason, "it was judged .* on ", name)

    def test_a_pass_found_wrong_later_is_out_of_every_graph(self):
        from passnet.backend import PassWarning
        from passnet.backend.compiled import CompiledGraph

        # Wrong on large values only: the first calls see none.
        self.library.add(RIGHT.replace("tl.store(out_ptr + at, out,", "tl.store(out_ptr + at, tl.where(x > 50.0, 0.0, out),"))
        for rest in ("eager", "inductor"):
            from passnet.backend import DROPPED

            torch._dynamo.reset()
            DROPPED.reasons.clear()
            compiled = self.compiled(lambda x, y: torch.nn.functional.gelu(x) + y, rest=rest)
            small, large = torch.randn(4, 32), torch.full((4, 32), 60.0)
            with torch.inference_mode(), warnings.catch_warnings(record=True) as said:
                warnings.simplefilter("always")
                original = CompiledGraph.__call__
                torch.testing.assert_close(compiled(small, small), torch.nn.functional.gelu(small) + small)
                CompiledGraph.__call__ = lambda self, *inputs: self.checked(*inputs)
                self.addCleanup(setattr, CompiledGraph, "__call__", original)
                torch.testing.assert_close(compiled(large, small), large + small)
                CompiledGraph.__call__ = original
                torch.testing.assert_close(compiled(large, small), large + small)
            said = [warning for warning in said if issubclass(warning.category, PassWarning)]
            self.assertEqual(len(said), 1, rest)


if __name__ == "__main__":
    unittest.main()
