"""What a graph is held against: `python -m unittest tests.test_compilers` (needs PyTorch; a GPU for CUDA graphs)."""

import unittest

try:
    import torch
except ImportError:
    torch = None

HAS_GPU = torch is not None and torch.cuda.is_available()


@unittest.skipIf(torch is None, "PyTorch is not installed")
class CompilersTest(unittest.TestCase):
    def test_copies_share_memory_as_the_outputs_did(self):
        from passnet.worker.compilers import own_copies

        given = torch.arange(6.0)
        base = torch.arange(12.0).reshape(3, 4)
        empty = torch.empty(0, 3)
        outputs = [base, base[1:, ::2], given.view(2, 3), empty]
        owned = own_copies(outputs, [given, 7])
        for output, copy in zip(outputs, owned, strict=True):
            self.assertEqual((output.shape, output.stride()), (copy.shape, copy.stride()))
            self.assertTrue(torch.equal(output, copy))
        base.fill_(-1)
        self.assertEqual(owned[0][1, 0].item(), 4.0)
        owned[0][1, 0] = 9.0
        self.assertEqual(owned[1][0, 0].item(), 9.0)
        self.assertEqual(owned[2].data_ptr(), given.data_ptr())

    def test_modes_with_cuda_graphs_overwrite_their_outputs(self):
        from passnet.worker.compilers import compiled, reuses_outputs

        for mode, expected in (
            ("default", False),
            ("reduce-overhead", True),
            ("max-autotune", True),
            ("max-autotune-no-cudagraphs", False),
        ):
            self.assertEqual(reuses_outputs({"name": "inductor", "mode": mode}), expected, mode)
        self.assertTrue(reuses_outputs({"name": "cudagraph"}))
        self.assertFalse(reuses_outputs({"name": "eager"}))
        with self.assertRaisesRegex(ValueError, "no compiler"):
            compiled(torch.nn.Identity(), {"name": "other"}, torch.device("cpu"), False)

    @unittest.skipUnless(HAS_GPU, "no GPU")
    def test_a_recording_follows_its_inputs(self):
        from passnet.worker.compilers import Captured, own_copies

        device = torch.device("cuda")

        def forward(x, n):
            x.add_(1)
            return torch.nn.functional.dropout(x * n, 0.5), x

        captured = Captured(forward, device, writes_inputs=True)
        with torch.no_grad():
            for shape in ((4, 5), (64, 3), (4, 5)):
                given = torch.randn(shape, device=device)
                expected_input = given.clone()
                torch.cuda.manual_seed(3)
                expected = forward(expected_input, 2)[0]
                torch.cuda.manual_seed(3)
                found = own_copies([captured(given, 2)[0]], [given])[0]
                torch.testing.assert_close(found, expected)
                torch.testing.assert_close(given, expected_input)
        self.assertEqual(len(captured.recordings), 2)


if __name__ == "__main__":
    unittest.main()
