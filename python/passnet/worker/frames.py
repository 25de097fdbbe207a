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


class Buffer:
    """Memory that frames are read into one after the other: fresh memory of megabytes costs as much as reading them."""

    def __init__(self) -> None:
        self.memory = bytearray()

    def room(self, count: int) -> memoryview:
        if count > len(self.memory):
            self.memory = bytearray(count)
        return memoryview(self.memory)[:count]


def read_exactly(stream: BinaryIO, into: memoryview) -> memoryview:
    left = into
    while left:
        got = stream.readinto(left)
        if not got:
            raise EOFError
        left = left[got:]
    return into


def read_frame(stream: BinaryIO, buffer: Buffer | None = None) -> tuple[dict[str, Any], memoryview]:
    """A message and its raw bytes, which the next frame read into the same buffer overwrites."""

    def take(count: int) -> memoryview:
        return read_exactly(stream, memoryview(bytearray(count)))

    magic, json_length, byte_length = HEAD.unpack(take(HEAD.size))
    if magic != MAGIC:
        raise BrokenFrame(f"a frame begins with {magic!r}")
    if json_length > MAX_JSON or byte_length > MAX_BYTES:
        raise BrokenFrame(f"a frame of {json_length} and {byte_length} bytes")
    message = json.loads(bytes(take(json_length)))
    if not isinstance(message, dict):
        raise BrokenFrame("a frame without an object")
    return message, take(byte_length) if buffer is None else read_exactly(stream, buffer.room(byte_length))


def write_frame(stream: BinaryIO, message: dict[str, Any], parts: list[memoryview] | None = None) -> None:
    parts = parts or []
    text = json.dumps(message, separators=(",", ":")).encode()
    stream.write(HEAD.pack(MAGIC, len(text), sum(part.nbytes for part in parts)))
    stream.write(text)
    for part in parts:
        stream.write(part)
    stream.flush()
