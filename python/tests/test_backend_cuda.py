"""Passes at work on a GPU: `python -m unittest tests.test_backend_cuda` (needs PyTorch, Triton, a GPU and the `passnet` program)."""

import unittest
import warnings

from tests.backend_library import RIGHT, WRONG_SIZES, BackendCase, LibraryFolder, program
from tests.test_backend import torch

if torch is not None:
    from tests.test_backend import Model


@unittest.skipIf(torch is None or not torch.cuda.is_available(), "no GPU")
@unittest.skipIf(program() is None, "the passnet program is not built")
class BackendOnGpuTest(BackendCase):
    def setUp(self):
        super().setUp()
        self.library.add(RIGHT)

    def only(self, text):
        """A library with one pass."""
        self.library = LibraryFolder()
        self.addCleanup(self.library.close)
        self.library.add(text)

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

    def test_an_expanded_input_is_recorded_as_what_it_expands(self):
        model = Model().cuda()
        compiled = self.compiled(model, cuda_graphs=True)
        with torch.inference_mode():
            for _ in range(4):
                x = torch.randn(1, 32, device="cuda").expand(8, 32)
                torch.testing.assert_close(compiled(x), model(x))
        self.assertEqual([graph["recorded"] for graph in self.graphs()], [1])

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

    def test_threads_and_streams_share_recordings(self):
        model = Model().cuda()
        compiled = self.compiled(model, cuda_graphs=True)
        self.check(model, compiled, torch.float32, (4, 32))

        def work(seed):
            generator = torch.Generator("cuda").manual_seed(seed)
            stream = torch.cuda.Stream()
            with torch.inference_mode(), torch.cuda.stream(stream):
                for _ in range(50):
                    x = torch.randn(4, 32, device="cuda", generator=generator)
                    found = compiled(x)
                    torch.testing.assert_close(found, model(x))

        self.in_threads(work)

    def test_a_wrong_pass_is_out_of_recordings(self):
        from passnet.backend import DROPPED

        self.only(WRONG_SIZES)
        for rest in ("eager", "fastest"):
            torch._dynamo.reset()
            DROPPED.reasons.clear()
            compiled = self.compiled(lambda x, y: torch.nn.functional.gelu(x) + y, cuda_graphs=True, rest=rest)
            with torch.inference_mode(), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                for rows in (4, 5, 4, 6):
                    for _ in range(4):
                        x, y = torch.randn(rows, 32, device="cuda"), torch.randn(rows, 32, device="cuda")
                        torch.testing.assert_close(compiled(x, y), torch.nn.functional.gelu(x) + y)
            self.assertEqual(len(DROPPED.reasons), 1)

    def test_the_fastest_way_is_recorded(self):
        model = Model().cuda()
        compiled = self.compiled(model, rest="fastest", cuda_graphs=True)
        with torch.inference_mode():
            for _ in range(5):
                x = torch.randn(4, 32, device="cuda")
                torch.testing.assert_close(compiled(x), model(x))
        self.assertEqual([graph["recorded"] for graph in self.graphs()], [1])
        self.assertGreaterEqual(len(self.graphs()[0]["ways_us"]), 2)

    def test_a_kernel_that_leaves_its_buffer_never_runs(self):
        # Right where a tensor has 128 elements; elsewhere it reads far behind the end.
        far = "tl.load(x_ptr + at + (count - 128) * 100000, mask=inside"
        self.only(RIGHT.replace("tl.load(x_ptr + at, mask=inside", far))
        compiled = self.compiled(lambda x, y: torch.nn.functional.gelu(x) + y)
        with torch.inference_mode():
            for rows in (4, 8):
                x, y = torch.randn(rows, 32, device="cuda"), torch.randn(rows, 32, device="cuda")
                torch.testing.assert_close(compiled(x, y), torch.nn.functional.gelu(x) + y)
        torch.cuda.synchronize()
        reasons = [kind["reason"] for graph in self.graphs() for region in graph["regions"] for kind in region["kinds"]]
        self.assertTrue(any("of a buffer with" in (reason or "") for reason in reasons), reasons)

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
