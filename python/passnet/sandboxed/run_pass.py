"""The wrapper of one pass, run inside the sandbox: for passes that cannot become launch plans.

This process imports the text of a pass, so nothing it says is believed. It is given the wrapper's arguments and gives
tensors back, in the worker's frames; the trusted side looks at those, compares them, and keeps every clock. What the
wrapper writes into its arguments stays here: they are copies. PyTorch's operators refuse to work for it (`poison`).

    {"device": "cpu" | "cuda", "threads": N}                            the first frame; `{"ok": true}` answers it
    {"files": [{"name", "text"}, …], "wrapper": NAME}                   the second; the same answer
    {"arguments": [{"value"} | {"items"} | {"dtype", "shape", "stride", "bytes"}, …]}     every other one
    {"ok": true, "outputs": […]}   or   {"ok": false, "message"}
"""

import importlib
import importlib.util
import os
import sys
import tempfile
import traceback
from pathlib import Path
from typing import Any

import torch

from passnet.sandboxed import poison
from passnet.worker.frames import read_frame, write_frame
from passnet.worker.tensors import flatten, from_wire, to_wire

# The trusted worker has the rest of a GPU. A courtesy, no wall: a pass can raise it.
SHARE_OF_MEMORY = 0.5


def open_device(name: str) -> torch.device:
    """Makes PyTorch and Triton ready for a device."""
    has_triton = importlib.util.find_spec("triton") is not None
    if name == "cpu":
        if has_triton:
            poison.teach_interpreter()
        return torch.device("cpu")
    device = torch.device("cuda", 0)
    torch.cuda.set_per_process_memory_fraction(SHARE_OF_MEMORY, device)
    torch.zeros(1, device=device).cpu()
    if has_triton:
        from passnet.sandboxed import triton_driver

        triton_driver.install()
    return device


def load(request: dict[str, Any], folder: Path) -> Any:
    for file in request["files"]:
        (folder / f"{file['name']}.py").write_text(file["text"])
    sys.path.insert(0, str(folder))
    module = importlib.import_module(request["files"][0]["name"])
    return getattr(module, request["wrapper"])


def argument(described: dict[str, Any], data: memoryview, device: torch.device) -> Any:
    if "value" in described:
        return described["value"]
    if "items" in described:
        return tuple(argument(item, data, device) for item in described["items"])
    return from_wire(described, data, device)


def main() -> None:
    writer = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    reader = os.fdopen(os.dup(0), "rb", buffering=1 << 16)
    device, wrapper = None, None
    with tempfile.TemporaryDirectory() as folder, torch.no_grad():
        while True:
            try:
                request, data = read_frame(reader)
            except EOFError:
                return
            parts: list[memoryview] = []
            reply: dict[str, Any] = {"ok": True}
            try:
                if device is None:
                    torch.set_num_threads(request["threads"])
                    device = open_device(request["device"])
                elif wrapper is None:
                    wrapper = load(request, Path(folder))
                else:
                    tensors: list[torch.Tensor] = []
                    arguments = [argument(one, data, device) for one in request["arguments"]]
                    flatten(poison.call(wrapper, arguments), tensors)
                    if device.type == "cuda":
                        # A kernel that failed says so here, and not as the failure of a copy.
                        torch.cuda.synchronize()
                    reply["outputs"], at = [], 0
                    for tensor in tensors:
                        reply["outputs"].append(to_wire(tensor, parts, at))
                        at += parts[-1].nbytes
            except BaseException as error:  # noqa: BLE001 - whatever a pass raises is its result
                traceback.print_exc()
                parts, reply = [], {"ok": False, "message": f"{type(error).__name__}: {error}"[:2000]}
            write_frame(writer, reply, parts)


main()
