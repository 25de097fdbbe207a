"""Passes at work on a GPU: `python -m unittest tests.test_backend_cuda` (needs PyTorch, Triton, a GPU and the `passnet` program)."""

import unittest

from tests.backend_library import RIGHT, BackendCase, program
from tests.test_backend import torch

if torch is not None:
    from tests.test_backend import Model


@unittest.skipIf(torch is None or not torch.cuda.is_available(), "no GPU")
@unittest.skipIf(program() is None, "the passnet program is not built")
class BackendOnGpuTest(BackendCase):
    def setUp(self):
        super().setUp()
        self.library.add(RIGHT)

    def graphs(self):
        from passnet.backend import report

        return report().as_dict()["graphs"]

    def check(self, model, compiled, dtype, *sizes, calls=4):
        with torch.inference_mode():
            for size in sizes:
                for _ in range(calls):
                    x = torch.randn(size, device="cuda", dtype=dtype)
                    torch.testing.assert_close(compiled(x), model(x))
        for graph in self.graphs():
            states = {region["state"] for region in graph["regions"]}
            self.assertEqual(states, {"used"}, graph)

    def test_regions_are_replaced_in_every_type(self):
        for dtype in (torch.float32, torch.float16, torch.bfloat16):
            torch._dynamo.reset()
            model = Model().to("cuda", dtype)
            self.check(model, self.compiled(model), dtype, (4, 32), (64, 32))

    def test_recordings_follow_inputs_and_parameters(self):
        model = Model().cuda()
        compiled = self.compiled(model, cuda_graphs=True)
        self.check(model, compiled, torch.float32, (4, 32))
        self.assertEqual([graph["recorded"] for graph in self.graphs()], [1])
        with torch.inference_mode():
            one, two = (torch.randn(4, 32, device="cuda") for _ in range(2))
            first, second = compiled(one), compiled(two)
            torch.testing.assert_close(first, model(one))
            torch.testing.assert_close(second, model(two))
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.mul_(0.5)
        self.check(model, compiled, torch.float32, (4, 32))
        for parameter in model.parameters():
            parameter.data = parameter.data.clone()
        self.check(model, compiled, torch.float32, (4, 32))
        self.assertEqual([graph["recorded"] for graph in self.graphs()], [2])

    def test_what_cannot_be_recorded_runs_as_it_is(self):
        compiled = self.compiled(lambda x, y: torch.nn.functional.gelu(x) + y.cuda(), cuda_graphs=True)
        with torch.inference_mode():
            for _ in range(3):
                x, y = torch.randn(4, 32, device="cuda"), torch.randn(4, 32)
                torch.testing.assert_close(compiled(x, y), torch.nn.functional.gelu(x) + y.cuda())

    def test_the_rest_through_inductor_with_recordings(self):
        model = Model().cuda()
        compiled = self.compiled(model, rest="inductor", inductor_mode="reduce-overhead")
        self.check(model, compiled, torch.float32, (4, 32), calls=6)

    def test_streams(self):
        model = Model().cuda()
        compiled = self.compiled(model)
        self.check(model, compiled, torch.float32, (4, 32))
        stream = torch.cuda.Stream()
        with torch.inference_mode():
            x = torch.randn(4, 32, device="cuda")
            stream.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(stream):
                found = compiled(x)
            torch.cuda.current_stream().wait_stream(stream)
            torch.testing.assert_close(found, model(x))


if __name__ == "__main__":
    unittest.main()
