#!/usr/bin/env python3
"""Conversations worth learning, each once, in an order that follows from their content.

    python recipes/short-passes/select.py OUT.jsonl IN.jsonl…

Kept are those whose first reply has a kernel (a pass that hands back what eager would is right, and teaches nothing) and
whose replies are short: the solver tells its shortest pass even where that is long.
"""

import hashlib
import json
import sys
from pathlib import Path

MOST_CHARACTERS = 2200


def main(out: str, *given: str) -> None:
    kept = {}
    for line in (line for path in given for line in Path(path).read_text().splitlines()):
        messages = json.loads(line)["messages"]
        replies = [message["content"] for message in messages if message["role"] == "assistant"]
        if "@triton.jit" in replies[0] and max(map(len, replies)) <= MOST_CHARACTERS:
            kept[hashlib.sha256(json.dumps(messages[1:3]).encode()).hexdigest()] = line
    Path(out).write_text("".join(f"{line}\n" for _, line in sorted(kept.items())))
    print(f"{len(kept)} conversations")


if __name__ == "__main__":
    main(*sys.argv[1:])
