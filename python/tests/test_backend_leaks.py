"""Nothing leaks: `python -m unittest tests.test_backend_leaks` (needs PyTorch and the `passnet` program)."""

import gc
import os
import sys
import unittest

from tests.backend_library import RIGHT, BackendCase, program
from tests.test_backend import torch

if torch is not None:
    from tests.test_backend import Model

# Calls before memory is looked at: by then, the calls that are checked at random are over.
SETTLED = 2_100
CALLS = 10_000
RECOMPILATIONS = 100
MIB = 2**20


def resident(process: int | str = "self") -> int:
    """Bytes of memory that a process has."""
    with open(f"/proc/{process}/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@unittest.skipIf(torch is None, "PyTorch is not installed")
@unittest.skipIf(program() is None, "the passnet program is not built")
class LeakTest(BackendCase):
    def test_ten_thousand_calls(self):
        self.library.add(RIGHT)
        model = Model(depth=2)
        # Fewer plans than kinds of inputs: plans come and go all the time.
        compiled = torch.compile(model, backend=self.backend(), options=self.options(plans=3), dynamic=True)
        inputs = [torch.randn(rows, 32) for rows in range(2, 7)]
        with torch.inference_mode():

            def call(number):
                # The same kind for a while, so that plans are replayed and not only made.
                compiled(inputs[number // 50 % len(inputs)])

            for number in range(SETTLED):
                call(number)
            gc.collect()
            blocks, memory, served = sys.getallocatedblocks(), resident(), resident(self.server())
            for number in range(CALLS):
                call(number)
            gc.collect()
            more = sys.getallocatedblocks() - blocks
        self.assertEqual([region["state"] for region in self.regions()], ["used"] * 2)
        # One object in ten calls would be a thousand.
        self.assertLess(more, CALLS // 10)
        self.assertLess(resident() - memory, 16 * MIB)
        self.assertLess(resident(self.server()) - served, 16 * MIB)

    def test_a_hundred_recompilations(self):
        self.library.add(RIGHT)
        model = Model(depth=2)

        def compile_some(backend, sizes, **options):
            with torch.inference_mode():
                for rows in sizes:
                    torch._dynamo.reset()
                    x = torch.randn(rows, 32)
                    torch.testing.assert_close(torch.compile(model, backend=backend, **options)(x), model(x))
            gc.collect()
            return resident(), sys.getallocatedblocks()

        ours = {"backend": self.backend(), "options": self.options()}
        grown = []
        for given in ({"backend": "eager"}, ours):
            compile_some(sizes=range(2, 22), **given)
            before = compile_some(sizes=range(22, 42), **given)
            served = resident(self.server())
            after = compile_some(sizes=range(42, 42 + RECOMPILATIONS), **given)
            grown.append([two - one for one, two in zip(before, after)])
        # What dynamo itself keeps is not ours.
        (their_memory, their_blocks), (memory, blocks) = grown
        self.assertLess(memory - max(their_memory, 0), 24 * MIB)
        self.assertLess(blocks - max(their_blocks, 0), 100 * RECOMPILATIONS)
        self.assertLess(resident(self.server()) - served, 16 * MIB)
        # Graphs that are gone are in no report.
        from passnet.backend import report

        self.assertLessEqual(len(report().as_dict()["graphs"]), 2)

    def options(self, **more):
        return {"library": str(self.library.folder), "trust": "all", "measure": False, **more}

    def backend(self):
        from passnet.backend import passnet_backend

        return passnet_backend

    def server(self):
        from passnet.backend.server import server

        return server().process.pid

    def regions(self):
        from passnet.backend import report

        return [region for graph in report().as_dict()["graphs"] for region in graph["regions"]]


if __name__ == "__main__":
    unittest.main()
