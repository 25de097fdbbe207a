"""Frames: a fixed head, a JSON object, then raw bytes.

    4 bytes  b"PNW1"
    4 bytes  length of the JSON, little endian
    8 bytes  length of the raw bytes, little endian
"""

import json
import struct
from typing import Any, BinaryIO

MAGIC = b"PNW1"
VERSION = 2
HEAD = struct.Struct("<4sIQ")
MAX_JSON = 64 << 20
MAX_BYTES = 16 << 30


class BrokenFrame(Exception):
    """The other side does not speak this protocol."""


def read_exactly(stream: BinaryIO, count: int) -> bytearray:
    buffer = bytearray(count)
    view = memoryview(buffer)
    while view:
        got = stream.readinto(view)
        if not got:
            raise EOFError
        view = view[got:]
    return buffer


def read_frame(stream: BinaryIO) -> tuple[dict[str, Any], bytearray]:
    magic, json_length, byte_length = HEAD.unpack(read_exactly(stream, HEAD.size))
    if magic != MAGIC:
        raise BrokenFrame(f"a frame begins with {magic!r}")
    if json_length > MAX_JSON or byte_length > MAX_BYTES:
        raise BrokenFrame(f"a frame of {json_length} and {byte_length} bytes")
    message = json.loads(bytes(read_exactly(stream, json_length)))
    if not isinstance(message, dict):
        raise BrokenFrame("a frame without an object")
    return message, read_exactly(stream, byte_length)


def write_frame(stream: BinaryIO, message: dict[str, Any], parts: list[memoryview] | None = None) -> None:
    parts = parts or []
    text = json.dumps(message, separators=(",", ":")).encode()
    stream.write(HEAD.pack(MAGIC, len(text), sum(part.nbytes for part in parts)))
    stream.write(text)
    for part in parts:
        stream.write(part)
    stream.flush()
