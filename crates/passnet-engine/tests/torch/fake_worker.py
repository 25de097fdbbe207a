#!/usr/bin/env python3
"""Speaks the worker's protocol without PyTorch, and goes wrong in the way its file name says: once, or for as long as a
file of its name lies beside it that ends in `.armed`."""

import json
import os
import signal
import struct
import sys
import time
from pathlib import Path

HEAD = struct.Struct("<4sIQ")
ME = Path(__file__)
FAULT = ME.stem
MARK = ME.with_suffix(".done")
ARMED = ME.with_suffix(".armed")
SHARED = Path(sys.argv[sys.argv.index("--shared-memory") + 1]) if "--shared-memory" in sys.argv else None


def read():
    magic, json_length, byte_length = HEAD.unpack(sys.stdin.buffer.read(HEAD.size))
    message = json.loads(sys.stdin.buffer.read(json_length))
    if magic == b"PNA1":
        return message, SHARED.read_bytes()[:byte_length]
    return message, sys.stdin.buffer.read(byte_length)


def frame(message, data=b""):
    text = json.dumps(message).encode()
    return HEAD.pack(b"PNW1", len(text), len(data)) + text + data


def frame_without_its_bytes(message, count):
    text = json.dumps(message).encode()
    return HEAD.pack(b"PNA1", len(text), count) + text


def send(raw):
    sys.stdout.buffer.write(raw)
    sys.stdout.buffer.flush()


def go_wrong(reply, number):
    if FAULT == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    if FAULT == "crashes":
        os.kill(os.getpid(), signal.SIGSEGV)
    if FAULT == "lost":
        # The reply of a worker whose device is lost; it goes a little later.
        message = "CUDA error: an illegal memory access was encountered"
        send(frame({"ok": False, "kind": "cuda", "message": message, "fatal": True, "id": number}))
        time.sleep(0.02)
        os._exit(3)
    if FAULT == "unequipped":
        message = "RemoteError: the worker was started without the native runner"
        send(frame({"ok": False, "kind": "machine", "message": message, "id": number}))
        return True
    if FAULT == "exits":
        print("out of luck", file=sys.stderr, flush=True)
        os._exit(7)
    if FAULT == "hangs":
        time.sleep(3600)
    if FAULT == "hoards":
        hoard = bytearray(os.urandom(1024)) * (400 << 10)
        time.sleep(3600)
        del hoard
    if FAULT == "garbage":
        send(b"Traceback (most recent call last):\n" * 4)
        time.sleep(3600)
    if FAULT == "half":
        send(reply[: len(reply) // 2])
        os._exit(0)
    if FAULT == "empty":
        send(frame_without_its_bytes({"ok": True}, 12))
        time.sleep(3600)
    if FAULT == "stranger":
        send(frame({"ok": True, "id": 123456}))
        time.sleep(3600)


def main():
    while True:
        try:
            request, data = read()
        except struct.error:
            return
        reply = {"ok": True, "id": request["id"]}
        if request["call"] == "hello":
            # One of the workers cannot open it.
            shared = SHARED is not None and FAULT != "half" and os.access(SHARED, os.R_OK)
            about = {"version": 1, "shared_memory": shared, "python": "3", "torch": "none", "device": "fake"}
            send(frame({**reply, **about}))
            continue
        if request["call"] == "run":
            entry = {**request["inputs"][0], "input": None, "offset": 0, "storage": 0}
            raw = frame({**reply, "outputs": [entry], "changed": []}, data)
            if ARMED.exists() or not MARK.exists():
                MARK.touch()
                if go_wrong(raw, request["id"]):
                    continue
            send(raw)
            continue
        if request["call"] == "calls":
            turns = request["turns"]
            compare = lambda turn: None if turn["is_candidate"] else turn["level"]  # noqa: E731
            levels = [compare(turn) for turn in turns]
            compared = [None if level is None else {"right_from": level} for level in levels]
            reply.update({"seconds": [0.001] * len(turns), "compared": compared})
        send(frame(reply))


main()
