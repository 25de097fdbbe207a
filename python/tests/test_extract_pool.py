"""Bad models cost themselves only, and a killed run continues; needs PyTorch, skipped without it."""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path
from unittest import mock

try:
    import torch  # noqa: F401
except ImportError as error:
    raise unittest.SkipTest("PyTorch is not installed") from error

from passnet.extract import pool
from passnet.extract.model import Entry
from passnet.extract.results import Results, read

MODELS = '''
import os, sys, time
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self, width=4):
        super().__init__()
        self.linear = nn.Linear(width, 2)

    def forward(self, x):
        return torch.relu(self.linear(x))

class Chooses(nn.Module):
    def forward(self, x):
        return x + 1 if x.sum() > 0 else x - 1

def good():
    return Net(), torch.ones(1, 4)

def named():
    return Net(), {"x": torch.ones(1, 4)}

def raises():
    raise ValueError("no such weights")

def hangs():
    while True:
        pass

def eats():
    kept = []
    while True:
        kept.append(bytearray(1 << 24))

def prints():
    for stream in (sys.stdout, sys.stderr):
        stream.write("\\x00\\xff{\\"outcome\\": \\"captured\\"}\\n" * 10_000)
    os.write(1, bytes(range(256)) * 1_000)
    return Net(), torch.ones(1, 4)

def returns_nothing():
    return None

def no_inputs():
    return Net()

def exits():
    sys.exit(3)

def dies():
    os.kill(os.getpid(), 11)

def chooses():
    return Chooses(), torch.ones(3)

def leaves_a_child():
    if os.fork() == 0:
        time.sleep(600)
    return Net(), torch.ones(1, 4)

def slow():
    time.sleep(float(os.environ.get("PASSNET_TEST_SLEEP", "0")))
    return Net(8), torch.ones(1, 8)
'''


class Extraction(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.out = self.folder / "out"
        self.file = self.folder / "models.py"
        self.file.write_text(MODELS)

    def command(self, *factories: str, options: tuple[str, ...] = ()) -> list[str]:
        specs = [f"{self.file}:{name}" for name in factories]
        return [sys.executable, "-m", "passnet.extract", *specs, "--out", str(self.out), *options]

    def extract(self, *factories: str, options: tuple[str, ...] = ()) -> subprocess.CompletedProcess:
        return subprocess.run(
            self.command(*factories, options=options), capture_output=True, text=True, timeout=240, check=False
        )

    def records(self) -> dict[str, dict]:
        return {name.removeprefix("own/models_"): record for name, record in read(self.out / "results.jsonl").items()}

    def test_every_way_to_fail_has_its_reason_and_the_rest_is_done(self) -> None:
        expected = {
            "raises": ("factory raised", "ValueError: no such weights"),
            "hangs": ("time limit", "while building"),
            "eats": ("memory limit", "while building"),
            "returns_nothing": ("no module", "NoneType"),
            "no_inputs": ("no inputs", "example_inputs"),
            "exits": ("factory raised", "SystemExit: 3"),
            "dies": ("crashed", "while building"),
            "chooses": ("data-dependent control flow", ""),
            "missing": ("bad request", "no function `missing`"),
        }
        good = ["good", "named", "prints", "leaves_a_child"]
        limits = ("--time-limit", "10", "--memory-limit-mb", "1500", "--jobs", "3", "--fullgraph", "--json")
        done = self.extract(*expected, *good, options=limits)
        self.assertEqual(done.returncode, 1, done.stderr)
        records = self.records()
        for name, (kind, reason) in expected.items():
            with self.subTest(name):
                self.assertEqual(records[name]["kind"], kind, records[name])
                self.assertIn(reason, records[name]["reason"])
                self.assertFalse((self.out / "samples/own" / f"models_{name}").exists())
        for name in good:
            with self.subTest(name):
                self.assertEqual(records[name]["outcome"], "captured", records[name])
                self.assertTrue((self.out / "samples/own" / f"models_{name}" / "graph_net.json").exists())
        # What a factory prints is not in our own output, which stays JSON.
        for line in done.stdout.splitlines():
            json.loads(line)
        self.assertFalse((self.out / ".partial").exists())

    def test_a_killed_run_continues(self) -> None:
        environment = {**os.environ, "PASSNET_TEST_SLEEP": "120"}
        running = subprocess.Popen(
            self.command("good", "slow"), env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        deadline = time.monotonic() + 120
        while "good" not in self.records() and time.monotonic() < deadline:
            time.sleep(0.1)
        running.send_signal(signal.SIGKILL)
        running.wait()
        self.assertEqual(list(self.records()), ["good"])
        before = (self.out / "samples/own/models_good/model.py").stat().st_mtime_ns
        with (self.out / "results.jsonl").open("a") as file:
            file.write('{"id": "own/mod')  # a line that a kill tore

        done = self.extract("good", "slow")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual({name: r["outcome"] for name, r in self.records().items()}, {"good": "captured", "slow": "captured"})
        self.assertEqual((self.out / "samples/own/models_good/model.py").stat().st_mtime_ns, before)

    def test_a_folder_moved_but_not_recorded_is_found(self) -> None:
        self.assertEqual(self.extract("good").returncode, 0)
        (self.out / "results.jsonl").unlink()
        self.assertEqual(self.extract("good").returncode, 0)
        self.assertEqual(self.records()["good"]["graphs"], 1)

    def test_nothing_to_do_is_said(self) -> None:
        done = self.extract()
        self.assertEqual(done.returncode, 2)
        self.assertIn("nothing to capture", done.stderr)


class BusyMachine(unittest.TestCase):
    def test_two_that_share_a_core_wait_for_it(self) -> None:
        if not Path("/proc/self/schedstat").exists():
            self.skipTest("this kernel counts no waiting")
        core = {min(os.sched_getaffinity(0))}
        spins = "import time; end = time.monotonic() + 1.5\nwhile time.monotonic() < end: pass"
        both = [subprocess.Popen([sys.executable, "-c", spins], preexec_fn=lambda: os.sched_setaffinity(0, core)) for _ in "ab"]
        time.sleep(1.0)
        waited = sum(pool._waited(one.pid) for one in both)
        for one in both:
            one.wait()
        self.assertGreater(waited, 0.4)

    def test_the_wait_for_a_core_is_not_the_models_time(self) -> None:
        child = pool._Child(Entry("own", "x", "file"), os.getpid(), -1, Path("x"), time.monotonic() - 100.0)
        with tempfile.TemporaryDirectory() as folder:
            watching = pool.Pool(pool.Plan(Path(folder), limits=pool.Limits(seconds=10.0)), lambda _: lambda: None)
            with mock.patch.object(pool, "_waited", return_value=95.0):
                self.assertIsNone(watching._look_at(child, False))
            with mock.patch.object(pool, "_waited", return_value=5.0):
                self.assertEqual(watching._look_at(child, False)["kind"], "time limit")
            child.begun -= 200.0
            with mock.patch.object(pool, "_waited", return_value=299.0):
                self.assertEqual(watching._look_at(child, False)["kind"], "time limit")


class ResultsFile(unittest.TestCase):
    def test_garbage_between_records_is_passed_over(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "results.jsonl"
            path.write_bytes(b'{"id": "a", "outcome": "captured"}\n\xff\xfe\n[1]\n{"id": 3}\n{"id"')
            results = Results(path)
            self.assertEqual(list(results.by_id), ["a"])
            results.append({"id": "b", "outcome": "failed"})
            self.assertEqual(list(read(path)), ["a", "b"])


if __name__ == "__main__":
    unittest.main()
