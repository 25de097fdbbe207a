"""Nodes and workers of a Ray cluster, as messages.

Everything that happens arrives in one queue: what the driver says, what workers answer, which nodes come and go. One loop
takes it from there, so that nothing here needs a lock. Contents that several units need are in Ray's object store, by
digest: they leave the driver's machine once for each node that needs them. What one unit needs goes with its call.
"""

from __future__ import annotations

import os
import queue
import sys
import threading
import time
from dataclasses import dataclass, field
from typing import Any, BinaryIO

import ray
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from . import frames, worker

# How often the list of nodes is looked at.
_POLL_SECONDS = 1.0
# A head that says nothing for so long is gone.
_LOST_SECONDS = 30.0
# Between the death of a worker and the next one on its node.
_RESTART_SECONDS = 1.0
# A node on which no worker could be started so many times is refused.
_MOST_STARTS = 3
# Ray carries arguments up to 100 KiB inside of a call; larger ones go through the object store, as those of many units do.
_INLINE_BYTES = 64 << 10


@dataclass
class Node:
    id: str
    name: str
    resources: dict[str, float]
    is_alive: bool = True
    is_retired: bool = False
    failures: int = 0
    workers: set[int] = field(default_factory=set)


@dataclass
class Hand:
    """A worker as the bridge knows it."""

    node: str
    actor: Any
    options: dict[str, float]
    unit: int | None = None
    is_ready: bool = False


def slots(kind: str, resources: dict[str, float]) -> list[dict[str, float]]:
    """What each worker of a node asks Ray for.

    `cuda`: one worker for each GPU, with its share of the cores. `cpu`: one worker that has all cores, so that nothing
    else runs beside the clock. `free`: nothing is timed, one worker for each core.
    """
    cpus, gpus = resources.get("CPU", 0.0), int(resources.get("GPU", 0.0))
    if kind == "cuda":
        return [{"num_gpus": 1, "num_cpus": cpus // gpus if gpus else 0}] * gpus
    if kind == "cpu":
        return [{"num_cpus": cpus}] if cpus >= 1 else []
    return [{"num_cpus": 1}] * int(cpus)


class Bridge:
    def __init__(self, kind: str, program: str, arguments: list[str], out: BinaryIO) -> None:
        self.kind = kind
        self.program = program
        self.arguments = arguments
        self.out = out
        self.events: queue.Queue[tuple[Any, ...]] = queue.Queue()
        self.nodes: dict[str, Node] = {}
        self.hands: dict[int, Hand] = {}
        self.contents: dict[str, Any] = {}
        self.next_worker = 0
        # The class travels by value: nodes need Ray, and nothing of ours in their Python.
        ray.cloudpickle.register_pickle_by_value(frames)
        ray.cloudpickle.register_pickle_by_value(worker)
        self.actor_class = ray.remote(worker.Worker)

    def run(self, pipe: BinaryIO) -> None:
        threading.Thread(target=self._read, args=(pipe,), daemon=True).start()
        threading.Thread(target=self._watch, daemon=True).start()
        while True:
            what, *rest = self.events.get()
            if what == "driver":
                if not self._obey(*rest):
                    return
            elif what == "nodes":
                self._nodes(*rest)
            elif what == "hello":
                self._hello(*rest)
            elif what == "answer":
                self._answer(*rest)
            elif what == "start":
                self._start(*rest)
            elif what == "lost":
                self._say({"is": "lost", "reason": rest[0]})
                return

    def _say(self, message: frames.Message, payload: bytes = b"") -> None:
        try:
            frames.write(self.out, message, payload)
        except BrokenPipeError:
            # The driver is gone, and the end of its own pipe says so.
            pass

    def _read(self, pipe: BinaryIO) -> None:
        while (found := frames.read(pipe)) is not None:
            self.events.put(("driver", *found))
        self.events.put(("driver", {"do": "stop"}, b""))

    def _watch(self) -> None:
        """Asks for the nodes again and again; a question without an answer must not stop the one who waits for it."""
        answered = time.monotonic()

        def ask() -> None:
            nonlocal answered
            while True:
                try:
                    found = ray.nodes()
                except Exception:  # noqa: BLE001 - whatever Ray raises, there is no answer
                    time.sleep(_POLL_SECONDS)
                    continue
                answered = time.monotonic()
                self.events.put(("nodes", found))
                time.sleep(_POLL_SECONDS)

        threading.Thread(target=ask, daemon=True).start()
        while time.monotonic() - answered < _LOST_SECONDS:
            time.sleep(_POLL_SECONDS)
        self.events.put(("lost", f"the head of the cluster gives no answer for {_LOST_SECONDS:.0f} s"))

    def _nodes(self, found: list[dict[str, Any]]) -> None:
        fresh = []
        for about in found:
            id = about["NodeID"]
            known = self.nodes.get(id)
            if known is None and about["Alive"]:
                name = f"{about['NodeManagerHostname']}/{id[:8]}"
                node = self.nodes[id] = Node(id, name, about["Resources"])
                fresh.append(node)
                self._say({"is": "joined", "node": id, "name": name})
            elif known is not None and known.is_alive and not about["Alive"]:
                known.is_alive = False
                self._say({"is": "left", "node": id, "reason": "the node is gone"})
        # All are known before the first is refused: one that is no use says nothing about the others.
        for node in fresh:
            options = slots(self.kind, node.resources)
            if not options:
                wants = "GPU" if self.kind == "cuda" else "core"
                self._say({"is": "refused", "node": node.id, "reason": f"it has no {wants} for us"})
            for option in options:
                self._start(node.id, option)

    def _start(self, id: str, options: dict[str, float]) -> None:
        node = self.nodes[id]
        if node.is_retired or not node.is_alive:
            return
        number = self.next_worker
        self.next_worker += 1
        place = NodeAffinitySchedulingStrategy(id, soft=False)
        actor = self.actor_class.options(
            scheduling_strategy=place, max_restarts=0, max_task_retries=0, **options
        ).remote(self.program, self.arguments)
        self.hands[number] = Hand(id, actor, options)
        node.workers.add(number)
        self._when_done(actor.hello.remote(), "hello", number)

    def _when_done(self, reference: Any, what: str, number: int) -> None:
        def tell(future: Any) -> None:
            error = future.exception()
            self.events.put((what, number, None if error else future.result(), error))

        reference.future().add_done_callback(tell)

    def _hello(self, number: int, hello: Any, error: BaseException | None) -> None:
        hand = self.hands.get(number)
        if hand is None:
            return
        if error is None:
            hand.is_ready = True
            self._say({"is": "ready", "worker": number, "node": hand.node, "hello": hello})
            return
        self._end(number)
        node = self.nodes[hand.node]
        node.failures += 1
        if node.failures < _MOST_STARTS:
            self._later(_RESTART_SECONDS, "start", node.id, hand.options)
        elif node.is_alive and not node.is_retired:
            self._say({"is": "refused", "node": node.id, "reason": reason(error)})

    def _answer(self, number: int, answer: Any, error: BaseException | None) -> None:
        hand = self.hands.get(number)
        if hand is None:
            return
        unit, hand.unit = hand.unit, None
        if error is None:
            message, payload = answer
            self._say({"is": "done", "worker": number, "unit": unit, "reply": message}, payload)
            return
        self._end(number)
        # A node that dies is first heard of as a worker that cannot be reached: that is not the unit's doing.
        names = type(error).__name__ + type(getattr(error, "cause", None)).__name__
        by_node = worker.WorkerDied.__name__ not in names
        self._say({"is": "died", "worker": number, "reason": reason(error), "by_node": by_node})
        self._later(_RESTART_SECONDS, "start", hand.node, hand.options)

    def _later(self, seconds: float, *event: Any) -> None:
        timer = threading.Timer(seconds, lambda: self.events.put(event))
        timer.daemon = True
        timer.start()

    def _end(self, number: int) -> None:
        hand = self.hands.pop(number)
        self.nodes[hand.node].workers.discard(number)
        try:
            ray.kill(hand.actor)
        except Exception:  # noqa: BLE001 - it is gone already
            pass

    def _obey(self, message: frames.Message, payload: bytes) -> bool:
        """Does what the driver says; whether there is more to do."""
        match message["do"]:
            case "keep":
                is_small = len(payload) <= _INLINE_BYTES and not message["is_shared"]
                self.contents[message["digest"]] = payload if is_small else ray.put(payload)
            case "drop":
                self.contents.pop(message["digest"], None)
            case "start":
                self._give(message)
            case "retire":
                node = self.nodes[message["node"]]
                node.is_retired = True
                for number in list(node.workers):
                    self._end(number)
            case "stop":
                for number in list(self.hands):
                    self._end(number)
                return False
        return True

    def _give(self, message: frames.Message) -> None:
        hand = self.hands.get(message["worker"])
        # One that died meanwhile was reported.
        if hand is not None:
            hand.unit = message["unit"]
            unit = {"unit": message["unit"], "words": message["words"]}
            answer = hand.actor.perform.remote(unit, self.contents[message["input"]])
            self._when_done(answer, "answer", message["worker"])


def reason(error: BaseException) -> str:
    """What Ray says of a death, in one line: its own cause where there is one."""
    cause = getattr(error, "cause", None) or error
    lines = [line.strip() for line in str(cause).splitlines() if line.strip()]
    shown = [line for line in lines if "WorkerDied" in line or "FileNotFoundError" in line] or lines
    return " ".join(shown[-1:])[-600:] or type(error).__name__


def connect(address: str) -> None:
    """Joins the cluster as a driver; nothing that workers print comes here."""
    ray.init(address=address, namespace="passnet", log_to_driver=False, logging_level="ERROR")


def main(out: BinaryIO) -> int:
    first = frames.read(sys.stdin.buffer)
    if first is None:
        return 2
    begin, _ = first
    try:
        connect(begin["address"])
    except Exception as error:  # noqa: BLE001 - whatever Ray raises, there is no cluster
        lines = str(error).strip().splitlines() or [type(error).__name__]
        frames.write(out, {"is": "lost", "reason": f"no cluster at {begin['address']}: {lines[0]}"})
        return 3
    Bridge(begin["kind"], begin["program"], begin["arguments"], out).run(sys.stdin.buffer)
    out.close()
    # Threads that wait for a head that is gone would keep the process.
    os._exit(0)
