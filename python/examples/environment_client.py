"""A client of `passnet agent serve`, with nothing but the standard library.

    passnet agent serve bench/tasks
    python python/examples/environment_client.py http://127.0.0.1:8765 --task geglu_tanh --passes bench/passes

A trainer would put its model where `policy` stands: it sees the conversation so far and gives the calls of the next
reply. This one hands in the hand-written pass of the task.
"""

import argparse
import json
import os
import pathlib
import urllib.request


class Environment:
    """One episode of a task."""

    def __init__(self, url, task):
        self.url = url.rstrip("/")
        begun = self.post("reset", {"task": task})
        self.episode = begun["episode"]
        self.messages = begun["messages"]
        self.tools = begun["tools"]

    def post(self, what, body):
        headers = {"content-type": "application/json"}
        if token := os.environ.get("PASSNET_TOKEN"):
            headers["authorization"] = f"Bearer {token}"
        request = urllib.request.Request(f"{self.url}/v1/{what}", json.dumps(body).encode(), headers)
        # Evaluations stand in line; give them time.
        with urllib.request.urlopen(request, timeout=3600) as answer:
            return json.load(answer)

    def step(self, calls):
        return self.post("step", {"episode": self.episode, "calls": calls})

    def score(self):
        return self.post("score", {"episode": self.episode})

    def close(self):
        return self.post("close", {"episode": self.episode})


def policy(folder):
    """The calls of each reply: write the files of a pass folder, look, evaluate, submit."""
    files = sorted(path for path in folder.iterdir() if path.suffix in (".py", ".json"))
    yield [
        {"name": "create", "arguments": {"path": f"pass_dir/{path.name}", "file_text": path.read_text()}}
        for path in files
    ]
    yield [{"name": "match"}, {"name": "check"}]
    yield [{"name": "evaluate"}]
    yield [{"name": "submit"}]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("url")
    parser.add_argument("--task", required=True)
    parser.add_argument("--passes", required=True, type=pathlib.Path, help="a folder with one pass folder per task")
    arguments = parser.parse_args()
    environment = Environment(arguments.url, arguments.task)
    total = 0.0
    for calls in policy(arguments.passes / arguments.task):
        step = environment.step(calls)
        total += step["reward"]
        for result in step["results"]:
            print(f"{result['tool']}: {result['observation'].splitlines()[0]}")
        print(f"reward {step['reward']:.4f}, done {step['done']}")
        if step["done"]:
            break
    score = environment.score()
    print(f"score {score['score']}, correct: {score['correct']}, return {total:.4f}")
    environment.close()


if __name__ == "__main__":
    main()
