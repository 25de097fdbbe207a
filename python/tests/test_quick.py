"""Calls straight into the native runner: who is served, who goes the slow way. Needs PyTorch, and `PASSNET_RUNNER`."""

import gc
import json
import os
import unittest
import weakref

try:
    import torch
except ImportError:
    torch = None

RUNNER = os.environ.get("PASSNET_RUNNER")


@unittest.skipIf(torch is None or not RUNNER, "needs PyTorch and PASSNET_RUNNER")
class QuickCallTest(unittest.TestCase):
    def setUp(self):
        from passnet.kernels.launch_cost import ELEMENTS, load_plan
        from passnet.worker.plans import PlanCall, Runner

        self.elements = ELEMENTS
        runner = Runner(RUNNER)
        self.asked = []
        cpu = torch.device("cpu")

        def ask(node, arguments):
            self.asked.append(arguments)
            return load_plan(runner, cpu)

        self.call = PlanCall(0, ask, runner)
        self.quick = runner.quick
        self.function = self.call.function()

    def tensors(self, dtype=None):
        return tuple(torch.randn(self.elements).to(dtype or torch.float32) for _ in range(2))

    def test_memory_of_another_device_is_refused(self):
        from passnet.worker.plans import PlanError

        x, y = self.tensors()
        self.function(x, y)
        elsewhere = x.to("meta")
        for _ in range(2):
            with self.assertRaisesRegex(PlanError, "argument 0 of the wrapper lies on meta, its kernels run on cpu"):
                self.function(elsewhere, y)
        self.function(x, y)

    def test_the_second_call_is_served_natively(self):
        self.assertIsNotNone(self.call.handle, "this PyTorch is known to the native side")
        x, y = self.tensors()
        self.assertTrue(torch.equal(self.function(x, y), x + y))
        kept, self.call.plans = self.call.plans, []
        x, y = self.tensors()
        self.assertTrue(torch.equal(self.function(x, y), x + y))
        self.assertEqual(len(self.asked), 1)
        self.assertTrue(kept)

    def test_results_are_fresh_and_nothing_is_kept_alive(self):
        x, y = self.tensors()
        first = self.function(x, y)
        copy = first.clone()
        second = self.function(y, y)
        self.assertNotEqual(first.data_ptr(), second.data_ptr())
        self.assertTrue(torch.equal(first, copy))
        gone = weakref.ref(second)
        del second
        self.assertIsNone(gone(), "the caller had the only reference")
        call = weakref.ref(self.call)
        self.function = self.call = None
        gc.collect()
        self.assertIsNone(call(), "a function that is gone lets its plans go")

    def test_other_arguments_are_asked_about(self):
        x, y = self.tensors()
        self.function(x, y)
        others = [
            (x.view(-1, 2), y.view(-1, 2)),
            (x.to(torch.int32), y.to(torch.int32)),
            (torch.randn(2 * self.elements)[::2], y),
            (torch.randn(self.elements + 1)[1:], y),
            (x, 1.0),
            (x,),
        ]
        for count, arguments in enumerate(others, start=2):
            try:
                self.function(*arguments)
            except Exception:  # noqa: BLE001 - the plan does not fit them; what counts is who was asked
                pass
            self.assertEqual(len(self.asked), count, arguments)

    def test_views_are_handed_back_natively(self):
        from passnet.worker.plans import Plan, PlanCall, Runner, describe

        runner = Runner(RUNNER)
        view = {"buffer": 0, "offset": 0, "dtype": "float32", "shape": [3, 2], "stride": [1, 3]}
        inside = {"buffer": 0, "offset": 2, "dtype": "float32", "shape": [2], "stride": [3]}
        plan = {
            "version": 1,
            "buffers": [{"name": "x", "dtype": "float32", "elements": 6, "init": {"input": 0}}],
            "steps": [],
            "returns": [view, inside],
            "returns_sequence": True,
            "notes": [],
        }

        def ask(node, arguments):
            handle = runner.load(json.dumps({"plan": plan, "kernels": []}).encode(), None)
            return Plan(runner, handle, plan, torch.device("cpu"), [describe(it) for it in arguments])

        call = PlanCall(0, ask, runner)
        function = call.function()
        x, device = torch.randn(8)[2:].view(2, 3), torch.device("cpu")
        function(x, device)
        call.plans = None
        turned, last = function(x, device)
        self.assertTrue(torch.equal(turned, x.t()))
        self.assertEqual((turned.data_ptr(), turned.stride()), (x.data_ptr(), (1, 3)))
        self.assertTrue(torch.equal(last, x[:, 2]))
        self.assertEqual((last.data_ptr(), last.stride()), (x[:, 2].data_ptr(), (3,)))
        gone = weakref.ref(function(x, device)[0])
        self.assertIsNone(gone(), "nothing keeps a view")

    def test_stages_are_measured(self):
        x, y = self.tensors()
        self.function(x, y)
        stages = self.quick.measure(self.call.handle, (x, y), 10)
        self.assertEqual(len(stages), 3)
        self.assertGreater(min(stages), 0.0)
        self.assertIsNone(self.quick.measure(self.call.handle, (x, x.view(2, -1)), 1))


if __name__ == "__main__":
    unittest.main()
