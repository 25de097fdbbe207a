"""Candidates of a tuned kernel are timed on copies; nothing of the caller's changes."""

import importlib.util
import unittest

HAVE_TORCH = importlib.util.find_spec("torch") is not None


@unittest.skipUnless(HAVE_TORCH, "needs PyTorch")
class Timing(unittest.TestCase):
    def timed(self, plans, arguments, written, limit=20.0):
        import torch

        from passnet.worker.tuning import time_candidates

        return time_candidates(plans, arguments, written, torch.device("cpu"), limit)

    def test_every_candidate_is_called_and_none_reaches_the_arguments(self):
        import torch

        class Doubles:
            calls = 0

            def place(self, arguments):
                return [arguments[0], arguments[1]]

            def launch(self, tensors):
                Doubles.calls += 1
                tensors[0].mul_(2)

        x = torch.ones(4, 6).t()[::2]
        y = torch.ones(3)
        timings = self.timed([Doubles(), "does not compile", Doubles(), None], (x, y), [0])
        self.assertTrue(torch.equal(x, torch.ones(3, 4)))
        self.assertEqual(timings[1:4:2], ["does not compile", None])
        self.assertTrue(timings[0] > 0 and timings[2] > 0)
        self.assertGreater(Doubles.calls, 2)
        self.assertEqual(self.timed([Doubles()], (x, y), [0], limit=-1.0), [None], "no time is left")

    def test_a_copy_is_laid_out_as_the_original(self):
        import torch

        from passnet.worker.tuning import copies

        x = torch.arange(24.0).reshape(4, 6).t()[::2]
        (copy, number) = copies((x, 3), [0, 1])
        self.assertEqual(copy.stride(), x.stride())
        self.assertTrue(torch.equal(copy, x))
        self.assertNotEqual(copy.data_ptr(), x.data_ptr())
        self.assertEqual(number, 3)


if __name__ == "__main__":
    unittest.main()
