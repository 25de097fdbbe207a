"""The wrapper of one pass, run inside the sandbox: for passes that cannot become launch plans.

This process imports the text of a pass, so nothing it says is believed. It is given the wrapper's arguments and gives
tensors back, in the worker's frames; the trusted side looks at those, compares them, and keeps every clock. What the
wrapper writes into its arguments stays here: they are copies.

    {"files": [{"name", "text"}, …], "wrapper": NAME, "threads": N}     the first frame; `{"ok": true}` answers it
    {"arguments": [{"value"} | {"items"} | {"dtype", "shape", "stride", "bytes"}, …]}     every other one
    {"ok": true, "outputs": […]}   or   {"ok": false, "message"}
"""

import importlib
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

import torch

from passnet.worker.frames import read_frame, write_frame
from passnet.worker.tensors import flatten, from_wire, to_wire

CPU = torch.device("cpu")


def load(request: dict[str, Any], folder: Path) -> Any:
    for file in request["files"]:
        (folder / f"{file['name']}.py").write_text(file["text"])
    sys.path.insert(0, str(folder))
    module = importlib.import_module(request["files"][0]["name"])
    return getattr(module, request["wrapper"])


def argument(described: dict[str, Any], data: memoryview) -> Any:
    if "value" in described:
        return described["value"]
    if "items" in described:
        return tuple(argument(item, data) for item in described["items"])
    return from_wire(described, data, CPU)


def main() -> None:
    writer = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    reader = os.fdopen(os.dup(0), "rb", buffering=1 << 16)
    wrapper = None
    with tempfile.TemporaryDirectory() as folder, torch.no_grad():
        while True:
            try:
                request, data = read_frame(reader)
            except EOFError:
                return
            parts: list[memoryview] = []
            reply: dict[str, Any] = {"ok": True}
            try:
                if wrapper is None:
                    torch.set_num_threads(request["threads"])
                    wrapper = load(request, Path(folder))
                else:
                    tensors: list[torch.Tensor] = []
                    flatten(wrapper(*(argument(one, data) for one in request["arguments"])), tensors)
                    reply["outputs"], at = [], 0
                    for tensor in tensors:
                        reply["outputs"].append(to_wire(tensor, parts, at))
                        at += parts[-1].nbytes
            except BaseException as error:  # noqa: BLE001 - whatever a pass raises is its result
                parts, reply = [], {"ok": False, "message": f"{type(error).__name__}: {error}"[:2000]}
            write_frame(writer, reply, parts)


main()
