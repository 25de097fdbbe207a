"""What goes through pipes: a line of JSON, and after it as many bytes as the line says."""

from __future__ import annotations

import json
from typing import Any, BinaryIO

Message = dict[str, Any]


def write(pipe: BinaryIO, message: Message, payload: bytes = b"") -> None:
    line = json.dumps({**message, "bytes": len(payload)}, separators=(",", ":"))
    pipe.write(line.encode() + b"\n" + payload)
    pipe.flush()


def read(pipe: BinaryIO) -> tuple[Message, bytes] | None:
    """The next message, or nothing at the end."""
    line = pipe.readline()
    if not line.endswith(b"\n"):
        return None
    message = json.loads(line)
    size = message.pop("bytes", 0)
    payload = pipe.read(size) if size else b""
    return (message, payload) if len(payload) == size else None
