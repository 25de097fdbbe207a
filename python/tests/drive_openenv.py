"""Drives a running `passnet agent serve` with the clients that trainers use: `python drive_openenv.py URL PASSES CLIENT…`.

Each hands in the files of PASSES and says `CLIENT: ok`. Started by tests of passnet-agent; needs the packages `openenv` and
`mcp`, and `verifiers` for the client of that name.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from mcp import ClientSession
from mcp.client.streamable_http import streamablehttp_client
from openenv import GenericEnvClient
from openenv.cli._validation import validate_running_environment
from openenv.core.mcp_client import MCPToolClient

TOOLS = {"view", "create", "str_replace", "insert", "undo", "match", "check", "evaluate", "submit"}
# Evaluations stand in line.
PATIENCE = 600.0


def creations(passes: Path) -> list[dict[str, str]]:
    return [
        {"path": f"pass_dir/{path.name}", "file_text": path.read_text(encoding="utf-8")}
        for path in sorted(passes.iterdir())
    ]


def over_a_websocket(url: str, passes: Path) -> None:
    with GenericEnvClient(base_url=url, message_timeout_s=PATIENCE).sync() as env:
        begun = env.reset(seed=1, episode_id="first")
        assert begun.reward is None and not begun.done
        assert [message["role"] for message in begun.observation["messages"]] == ["system", "user"]
        calls = [{"name": "create", "arguments": arguments} for arguments in creations(passes)]
        env.step({"calls": calls})
        looked = env.step({"text": '```json\n{"tool": "check"}\n```'})
        assert looked.reward == 1.0 and looked.observation["tier"] == "right", looked
        judged = env.step({"type": "call_tool", "tool_name": "evaluate", "arguments": {}})
        assert judged.reward > 0 and judged.observation["best"] > 0.1, judged
        state = env.state()
        assert (state["episode_id"], state["step_count"]) == ("first", 3), state
        assert env.step({"tool": "submit"}).done


async def over_mcp(url: str, passes: Path) -> None:
    async with MCPToolClient(base_url=url, message_timeout_s=PATIENCE) as env:
        assert {tool.name for tool in await env.list_tools()} == TOOLS
        await env.reset(task=None)
        for arguments in creations(passes):
            await env.call_tool("create", **arguments)
        said = await env.call_tool("match")
        assert "match" in said, said
        state = await env.state()
        assert state.step_count == 3, state


def own_validation(url: str, _passes: Path) -> None:
    report = validate_running_environment(url)
    assert report["passed"] and report["mode"] == "simulation", json.dumps(report, indent=1)


class Player:
    """In place of a model: says what it was given, turn by turn."""

    def __init__(self, replies: list[str]) -> None:
        self.replies = iter(replies)
        self.heard: list[dict[str, Any]] = []
        self.rewards: dict[str, float] = {}
        self.trace = SimpleNamespace(record_reward=self.rewards.__setitem__, stop=self.rewards.__setitem__)

    @asynccontextmanager
    async def interaction(self, _task: Any) -> Any:
        yield self

    async def turn(self, message: str) -> Any:
        self.heard.append(json.loads(message))
        reply = next(self.replies, None)
        return SimpleNamespace(terminated=reply is None, last_reply=reply or "")


async def through_verifiers(url: str, passes: Path) -> None:
    # Not every version of it can be installed beside OpenEnv.
    from verifiers.v1.tasksets.openenv import OpenEnvConfig, OpenEnvEnv, OpenEnvTaskset

    [task] = OpenEnvTaskset(OpenEnvConfig(id="openenv", base_url=url, resets=[{"seed": 0}])).load()
    written = [json.dumps({"tool": "create", "arguments": arguments}) for arguments in creations(passes)]
    words = "Both files at once.\n" + "\n".join(f"```json\n{call}\n```" for call in written)
    # A reply in words, one that is fenced JSON and nothing else, and bare JSON.
    player = Player([words, '```json\n{"tool": "check"}\n```', '{"tool": "submit"}'])
    env = OpenEnvEnv.__new__(OpenEnvEnv)
    await env.run(task, SimpleNamespace(player=player))
    assert player.rewards == {"openenv_reward": 1.0}, player.rewards
    assert player.heard[-1]["observation"]["tier"] == "right"


async def any_mcp_client(url: str, passes: Path) -> None:
    async with (
        streamablehttp_client(f"{url}/mcp?task=geglu_tanh") as (reading, writing, _),
        ClientSession(reading, writing) as session,
    ):
        begun = await session.initialize()
        assert begun.instructions and begun.serverInfo.name == "passnet"
        assert {tool.name for tool in (await session.list_tools()).tools} == TOOLS
        for arguments in creations(passes):
            assert not (await session.call_tool("create", arguments)).isError
        matched = await session.call_tool("match", {})
        assert matched.structuredContent and matched.structuredContent["tier"] == "matches", matched


CLIENTS: dict[str, Callable[[str, Path], Any]] = {
    "openenv's own validation": own_validation,
    "openenv over a WebSocket": over_a_websocket,
    "openenv over MCP": over_mcp,
    "an MCP client": any_mcp_client,
    "verifiers": through_verifiers,
}


def main() -> None:
    url, passes = sys.argv[1].rstrip("/"), Path(sys.argv[2])
    for client in sys.argv[3:]:
        done = CLIENTS[client](url, passes)
        if asyncio.iscoroutine(done):
            asyncio.run(done)
        print(f"{client}: ok", flush=True)


if __name__ == "__main__":
    main()
