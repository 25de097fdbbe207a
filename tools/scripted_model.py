#!/usr/bin/env python3
"""A provider on loopback whose replies are recorded: it works on any bundled task the same way, with the bundled pass.

    python3 tools/scripted_model.py --port 8080 [--passes bench/passes]
    passnet agent run bench/tasks/swiglu --model scripted --base-url http://127.0.0.1:8080/v1 --out runs/scripted

It speaks the chat-completions protocol, streaming, and has no memory: a reply follows from how many replies the
conversation holds already. With it the whole way of an agent can be tried on a machine without a network or a model.
"""

import argparse
import json
import re
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

MANIFEST = "sorted_output_pass_rule_names.json"


def calls_of(prompt: str, replies: int, passes: Path) -> list[tuple[str, dict]]:
    """The tool calls of the next reply."""
    task = re.search(r"^Task (\S+): ", prompt, re.MULTILINE)
    folder = passes / (task.group(1) if task else "")
    if not (folder / MANIFEST).is_file():
        return [("submit", {})]
    files = sorted(path for path in folder.iterdir() if path.suffix in (".py", ".json"))
    create = [("create", {"path": f"pass_dir/{path.name}", "file_text": path.read_text()}) for path in files]
    script = [
        [("view", {"path": "graphs/0/model.py"})],
        [*create, ("match", {})],
        [("check", {})],
        [("evaluate", {})],
        [("submit", {})],
    ]
    return script[min(replies, len(script) - 1)]


def chunks(calls: list[tuple[str, dict]]) -> list[dict]:
    """A streamed reply, its arguments in pieces."""
    delta = lambda part: {"choices": [{"index": 0, "delta": part}]}  # noqa: E731
    out = [delta({"role": "assistant", "content": ""})]
    for index, (name, arguments) in enumerate(calls):
        begin = {"index": index, "id": f"call_{index}", "type": "function", "function": {"name": name, "arguments": ""}}
        out.append(delta({"tool_calls": [begin]}))
        text = json.dumps(arguments)
        for at in range(0, len(text), 512):
            piece = {"index": index, "function": {"arguments": text[at : at + 512]}}
            out.append(delta({"tool_calls": [piece]}))
    out.append({"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]})
    out.append({"choices": [], "usage": {"prompt_tokens": 1000, "completion_tokens": 100}})
    return out


class Provider(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    passes = Path("bench/passes")

    def do_POST(self) -> None:  # noqa: N802 - the library's name
        body = json.loads(self.rfile.read(int(self.headers.get("content-length", 0))))
        if self.path != "/v1/chat/completions":
            self.send_error(404)
            return
        messages = body["messages"]
        prompt = next((m["content"] for m in messages if m["role"] == "user"), "")
        replies = sum(message["role"] == "assistant" for message in messages)
        events = [json.dumps(chunk) for chunk in chunks(calls_of(prompt, replies, self.passes))]
        answer = "".join(f"data: {event}\n\n" for event in [*events, "[DONE]"]).encode()
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("content-length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_: object) -> None:
        """Nobody reads it."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--port", type=int, default=8080, help="0 takes any that is free")
    parser.add_argument("--passes", type=Path, default=Path("bench/passes"))
    arguments = parser.parse_args()
    Provider.passes = arguments.passes
    server = ThreadingHTTPServer(("127.0.0.1", arguments.port), Provider)
    print(f"http://127.0.0.1:{server.server_port}/v1", flush=True)
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        pass
    return 0


if __name__ == "__main__":
    sys.exit(main())
