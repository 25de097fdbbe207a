"""Frames: a fixed head, a JSON object, then raw bytes.

    4 bytes  b"PNW1", or b"PNA1" where the raw bytes lie in the shared memory
    4 bytes  length of the JSON, little endian
    8 bytes  length of the raw bytes, little endian
"""

import json
import os
import struct
from typing import Any, BinaryIO

MAGIC = b"PNW1"
MAGIC_SHARED = b"PNA1"
VERSION = 4
HEAD = struct.Struct("<4sIQ")
MAX_JSON = 64 << 20
MAX_BYTES = 16 << 30
# It grows no larger, for it never shrinks.
MAX_SHARED = 256 << 20


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


def read_shared(shared: int, into: memoryview) -> memoryview:
    at = 0
    while at < len(into):
        got = os.preadv(shared, [into[at:]], at)
        if not got:
            raise BrokenFrame(f"{len(into)} bytes are not in the shared memory")
        at += got
    return into


def read_frame(
    stream: BinaryIO, buffer: Buffer | None = None, shared: int | None = None
) -> tuple[dict[str, Any], memoryview]:
    """A message and its raw bytes, which the next frame read into the same buffer overwrites."""
    buffer = buffer or Buffer()
    magic, json_length, byte_length = HEAD.unpack(read_exactly(stream, memoryview(bytearray(HEAD.size))))
    if magic != MAGIC and (magic != MAGIC_SHARED or shared is None):
        raise BrokenFrame(f"a frame begins with {magic!r}")
    if json_length > MAX_JSON or byte_length > MAX_BYTES:
        raise BrokenFrame(f"a frame of {json_length} and {byte_length} bytes")
    message = json.loads(bytes(read_exactly(stream, memoryview(bytearray(json_length)))))
    if not isinstance(message, dict):
        raise BrokenFrame("a frame without an object")
    room = buffer.room(byte_length)
    return message, read_exactly(stream, room) if magic == MAGIC else read_shared(shared, room)


def write_frame(
    stream: BinaryIO, message: dict[str, Any], parts: list[memoryview] | None = None, shared: int | None = None
) -> None:
    parts = parts or []
    text = json.dumps(message, separators=(",", ":")).encode()
    count = sum(part.nbytes for part in parts)
    is_shared = shared is not None and 0 < count <= MAX_SHARED
    if is_shared:
        at = 0
        for part in parts:
            at += write_shared(shared, part, at)
    stream.write(HEAD.pack(MAGIC_SHARED if is_shared else MAGIC, len(text), count))
    stream.write(text)
    for part in () if is_shared else parts:
        stream.write(part)
    stream.flush()


def write_shared(shared: int, part: memoryview, start: int) -> int:
    at = 0
    while at < part.nbytes:
        at += os.pwrite(shared, part[at:], start + at)
    return at
