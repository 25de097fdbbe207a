"""The reward function of recipes/verl_grpo.sh: one step of an episode at the environment server.

The server is PASSNET_SERVER, or http://127.0.0.1:8765.
"""

from __future__ import annotations

import json
import os
import urllib.request
from typing import Any

SERVER = os.environ.get("PASSNET_SERVER", "http://127.0.0.1:8765")


def ask(path: str, body: dict[str, Any]) -> dict[str, Any]:
    request = urllib.request.Request(f"{SERVER}/v1/{path}", json.dumps(body).encode(), {"content-type": "application/json"})
    with urllib.request.urlopen(request, timeout=1200) as answer:
        return json.load(answer)


def compute_score(data_source: str, solution_str: str, ground_truth: str, extra_info: dict[str, Any] | None = None) -> float:
    """`ground_truth` is the name of the task; what is right, the server knows."""
    episode = ask("reset", {"task": ground_truth})["episode"]
    try:
        return float(ask("step", {"episode": episode, "text": solution_str})["tiered_reward"])
    finally:
        ask("close", {"episode": episode})
