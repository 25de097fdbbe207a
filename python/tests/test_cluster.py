"""The bridge to Ray, as far as it can be looked at without a cluster."""

from __future__ import annotations

import io
import os
import stat
import sys
import tempfile
import textwrap
import unittest
from pathlib import Path
from unittest import mock

from passnet.cluster import frames, worker

try:
    from passnet.cluster import bridge
except ImportError:
    bridge = None  # type: ignore[assignment]

# A program that answers as the real one does, and dies when it is told to.
PROGRAM = """
    import json, os, sys
    sys.path.insert(0, {path!r})
    from passnet.cluster import frames
    while (found := frames.read(sys.stdin.buffer)) is not None:
        message, payload = found
        if message.get("words") == "die":
            print("I was told to", file=sys.stderr, flush=True)
            os.kill(os.getpid(), 9)
        frames.write(sys.stdout.buffer, {{"heard": message}}, payload[::-1])
"""


class Frames(unittest.TestCase):
    def test_messages_come_out_as_they_went_in(self) -> None:
        pipe = io.BytesIO()
        frames.write(pipe, {"unit": 1}, b"\n{}\n")
        frames.write(pipe, {"unit": 2})
        pipe.seek(0)
        self.assertEqual(frames.read(pipe), ({"unit": 1}, b"\n{}\n"))
        self.assertEqual(frames.read(pipe), ({"unit": 2}, b""))
        self.assertIsNone(frames.read(pipe))

    def test_a_message_that_is_cut_off_is_none(self) -> None:
        pipe = io.BytesIO()
        frames.write(pipe, {"unit": 1}, b"payload")
        for length in range(len(pipe.getvalue())):
            self.assertIsNone(frames.read(io.BytesIO(pipe.getvalue()[:length])), length)


class Worker(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.program = Path(folder.name) / "passnet"
        package = str(Path(__file__).resolve().parents[1])
        text = textwrap.dedent(PROGRAM.format(path=package))
        self.program.write_text(f"#!{sys.executable}\n{text}")
        self.program.chmod(self.program.stat().st_mode | stat.S_IXUSR)

    def test_units_go_in_and_results_come_out(self) -> None:
        with mock.patch.dict(os.environ, {"PASSNET_PROGRAM": str(self.program)}):
            started = worker.Worker("/no/such/program", ["bench"])
        self.assertEqual(started.hello(), {"heard": {"arguments": ["bench"]}})
        self.assertEqual(started.perform({"words": 7}, b"abc"), ({"heard": {"words": 7}}, b"cba"))
        with self.assertRaisesRegex(worker.WorkerDied, "signal SIGKILL.* on .*: I was told to"):
            started.perform({"words": "die"}, b"")

    def test_a_node_without_the_program_is_said(self) -> None:
        with mock.patch.dict(os.environ, {"PATH": "", "PASSNET_PROGRAM": ""}):
            with self.assertRaisesRegex(FileNotFoundError, "no `passnet` here: not at /no/such/program"):
                worker.program("/no/such/program")


@unittest.skipIf(bridge is None, "Ray is not there")
class Slots(unittest.TestCase):
    def test_a_clock_has_its_device_alone(self) -> None:
        node = {"CPU": 16.0, "GPU": 2.0}
        self.assertEqual(bridge.slots("cuda", node), [{"num_gpus": 1, "num_cpus": 8.0}] * 2)
        self.assertEqual(bridge.slots("cpu", node), [{"num_cpus": 16.0}])
        self.assertEqual(len(bridge.slots("free", node)), 16)
        self.assertEqual(bridge.slots("cuda", {"CPU": 4.0}), [])
        self.assertEqual(bridge.slots("cpu", {}), [])


if __name__ == "__main__":
    unittest.main()
