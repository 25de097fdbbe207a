"""Libraries for the tests of the backend: passes written here, added by the real program."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
import threading
import unittest
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]

HEAD = '''import torch
import triton
import triton.language as tl


def pattern(x, residual):
    return torch.nn.functional.gelu(x) + residual


def replacement_args(x, residual):
    return (x, residual)

'''

RIGHT = HEAD + '''
@triton.jit
def kernel(x_ptr, residual_ptr, out_ptr, count, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < count
    x = tl.load(x_ptr + at, mask=inside, other=0.0).to(tl.float32)
    residual = tl.load(residual_ptr + at, mask=inside, other=0.0).to(tl.float32)
    gelu = x * 0.5 * (1.0 + tl.erf(x * 0.7071067811865476))
    out = gelu.to(out_ptr.dtype.element_ty).to(tl.float32) + residual
    tl.store(out_ptr + at, SAID, mask=inside)


def gelu_add(x, residual):
    out = torch.empty_like(x)
    count = x.numel()
    kernel[(triton.cdiv(count, 1024),)](x, residual, out, count, BLOCK=1024)
    return out


def replacement_func():
    return gelu_add
'''

# Wrong numbers: one half too much.
WRONG = RIGHT.replace("SAID", "out + 0.5")
# Wrong at other sizes than the one of the first call.
WRONG_SIZES = RIGHT.replace("SAID", "tl.where(count == 4 * 32, out, out + 0.5)")
# Wrong from the second call on: memory that nobody filled holds what an earlier call left there, and it looks whether that is
# a number.
SECOND_CALL = RIGHT.replace(
    "    tl.store(out_ptr + at, SAID, mask=inside)",
    "    seen = tl.load(seen_ptr + at, mask=inside, other=0.0)\n"
    "    tl.store(out_ptr + at, tl.where(seen == seen, out + 0.5, out), mask=inside)\n"
    "    tl.store(seen_ptr + at, out, mask=inside)",
).replace("out_ptr, count, BLOCK", "out_ptr, seen_ptr, count, BLOCK").replace(
    "    count = x.numel()\n", "    seen = torch.empty_like(x)\n    count = x.numel()\n"
).replace("(x, residual, out, count", "(x, residual, out, seen, count")
# Wrong from the second call on: the wrapper counts its calls.
COUNTING = (
    RIGHT.replace("SAID", "tl.where(calls > 1, out + 0.5, out)")
    .replace("count, BLOCK: tl", "count, calls, BLOCK: tl")
    .replace("def gelu_add(x, residual):\n", "CALLS = []\n\n\ndef gelu_add(x, residual):\n    CALLS.append(1)\n")
    .replace("out, count, BLOCK=1024)", "out, count, len(CALLS), BLOCK=1024)")
)
RIGHT = RIGHT.replace("SAID", "out")


def program() -> str | None:
    """The program under test: named by PASSNET_PROGRAM, or built in this checkout."""
    named = os.environ.get("PASSNET_PROGRAM")
    built = [ROOT / "target" / profile / "passnet" for profile in ("debug", "release")]
    found = [str(path) for path in built if path.is_file()]
    return named or (found[0] if found else None)


class LibraryFolder:
    """A library in a temporary folder."""

    def __init__(self) -> None:
        self.place = tempfile.TemporaryDirectory()
        self.folder = Path(self.place.name) / "library"

    def add(self, text: str, name: str = "gelu_add", graphs: Path | None = None) -> None:
        passes = Path(self.place.name) / name
        passes.mkdir(exist_ok=True)
        (passes / f"{name}.py").write_text(text)
        (passes / "sorted_output_pass_rule_names.json").write_text(json.dumps([name]))
        self.run("add", str(passes), *(["--graphs", str(graphs)] if graphs else []))

    def run(self, *arguments: str) -> str:
        command = [program(), "library", *arguments, "--library", str(self.folder)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise AssertionError(f"{command}: {done.stdout}{done.stderr}")
        return done.stdout

    def close(self) -> None:
        self.place.cleanup()


class BackendCase(unittest.TestCase):
    """Each test has a library of its own, and nothing of the tests before it."""

    def setUp(self) -> None:
        import torch

        from passnet.backend import DROPPED, reporting

        os.environ["PASSNET_PROGRAM"] = program()
        torch._dynamo.reset()
        DROPPED.reasons.clear()
        reporting.clear()
        self.library = LibraryFolder()
        self.addCleanup(self.library.close)
        torch.manual_seed(0)

    def compiled(self, model: Any, **options: Any) -> Any:
        import torch

        from passnet.backend import passnet_backend

        given = {"library": str(self.library.folder), "trust": "all", "measure": False, **options}
        return torch.compile(model, backend=passnet_backend, options=given)

    def in_threads(self, work: Callable[[int], None], count: int = 4) -> None:
        """Runs it in threads at once; whatever one of them raises fails the test."""
        failures: list[Exception] = []

        def guarded(seed: int) -> None:
            try:
                work(seed)
            except Exception as error:  # noqa: BLE001 - a thread's exception is lost otherwise
                failures.append(error)

        threads = [threading.Thread(target=guarded, args=(seed,)) for seed in range(count)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(failures, [])
