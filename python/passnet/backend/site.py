"""One replaced region of a program's graph: a pass's launch plans, held against the code they replace.

What a plan gives follows from its arguments alone. It has no state of its own: the runner replays launches on memory that is
fresh in every call, and memory that a kernel could read before it is written is filled with the same bytes in every call
(which memory that is, the planner finds by looking at the kernels). A plan that was right on some values can still be wrong on others; for that
there are the verdicts of PassBench, calls checked later at random, and `verify="always"`.
"""

from __future__ import annotations

import threading
import warnings
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import torch.fx

from passnet.worker.plans import Plan, PlanError, RemoteError, check_devices, fits, signature_of
from passnet.worker.tuning import copy_of

from .options import Options
from .server import BackendError, server
from .timing import alone, seconds_of
from .verification import difference, in_double, other_layout, shares_memory, widened

# Turns in which a region is timed with and without its pass, and calls in each: as many as fit into these seconds.
TURNS = 5
CALLS = 10
SECONDS = 0.002
# What regions take, by pass and arguments; so many of them are kept.
MEASURED: dict[tuple[Any, ...], tuple[float, float]] = {}
MOST_MEASURED = 10_000


class PassWarning(UserWarning):
    """A pass was dropped, or could not be used."""


@dataclass
class Kind:
    """Arguments of one signature, and what runs on them."""

    signature: tuple[Any, ...]
    # None: eager.
    plan: Plan | None
    reason: str | None = None
    # Of one call: eager's, and the pass's.
    seconds: tuple[float, float] | None = None
    # How often its outputs were held against eager's.
    checks: int = 0


class Dropped:
    """Passes that gave something wrong, in this process; they are used nowhere any more."""

    def __init__(self) -> None:
        self.reasons: dict[str, str] = {}
        self.sites: weakref.WeakSet[Site] = weakref.WeakSet()
        self.lock = threading.Lock()

    def drop(self, name: str, reason: str) -> None:
        with self.lock:
            is_new = self.reasons.setdefault(name, reason) is reason
            sites = [site for site in self.sites if site.name == name]
        if is_new:
            text = f"passnet: pass `{name}` is dropped: {reason}; what it replaced runs as eager PyTorch"
            warnings.warn(text, PassWarning, stacklevel=2)
        for site in sites:
            site.become_eager(reason)


DROPPED = Dropped()


class Native:
    """What calls of a site use: a function of the runner's, which knows plans, and comes back to the site with the rest."""

    def __init__(self, site: Site) -> None:
        slow = Slow(site)
        made = server().runner.quick.make(slow)
        self.function, self.handle = made if made is not None else (slow, None)
        self.plans = slow.plans

    def teach(self, plan: Plan, arguments: tuple[Any, ...]) -> None:
        if self.handle is not None:
            self.plans.append(plan)
            plan.add_to(self.handle, arguments)


class Slow:
    """The way back. The runner's function holds it, and it holds the plans that the function knows by their addresses."""

    def __init__(self, site: Site) -> None:
        self.site = weakref.ref(site)
        self.plans: list[Plan] = []

    def __call__(self, *arguments: Any) -> Any:
        site = self.site()
        if site is None:
            raise RuntimeError("the graph of this call is gone")
        return site(*arguments)


class Site:
    """The call that stands for a region. Its arguments are those of the pass's wrapper, then what else the region reads."""

    def __init__(
        self,
        graph: int,
        index: int,
        described: dict[str, Any],
        region: torch.fx.GraphModule,
        inputs: list[int],
        arity: int,
        options: Options,
        device: torch.device,
    ) -> None:
        self.graph, self.index, self.name = graph, index, described["pass"]
        self.region, self.inputs, self.arity = region, inputs, arity
        self.removed: list[str] = described["removed"]
        self.outputs: list[str] = described["outputs"]
        self.gives_tuple: bool = described["gives_tuple"]
        self.writes = set(described["writes"])
        # What the wrapper may write: the region updates it, or nobody looks at it afterwards.
        self.written = self.writes | set(described["dead"])
        self.options, self.device = options, device
        # Then eager computes in other types than the operations say, and what differs is not the pass's fault.
        self.under_autocast = False
        # Why this region is eager's, whatever its arguments are.
        self.retired: str | None = None
        self.lock = threading.RLock()
        self.kinds: list[Kind] = []
        self.rebind: Callable[[Callable[..., Any]], None] = lambda function: None
        self.native = Native(self)
        self.function = self.native.function
        DROPPED.sites.add(self)

    def __call__(self, *arguments: Any) -> Any:
        with self.lock:
            kind = self.known(arguments)
            if kind is None:
                return self.meet(arguments)
            plan = kind.plan
            return self.eager(arguments) if plan is None else plan(arguments)

    def checked(self, *arguments: Any) -> Any:
        """Eager's result; what the plan gives is held against it."""
        with self.lock:
            kind = self.known(arguments)
            if kind is None:
                return self.meet(arguments)
            plan = kind.plan
            return self.eager(arguments) if plan is None else self.compare(kind, plan, arguments)

    def eager(self, arguments: tuple[Any, ...]) -> Any:
        return self.region(*[arguments[index] for index in self.inputs])

    def eager_call(self, *arguments: Any) -> Any:
        return self.eager(arguments)

    def known(self, arguments: tuple[Any, ...]) -> Kind | None:
        return next((kind for kind in self.kinds if fits(kind.signature, arguments)), None)

    def meet(self, arguments: tuple[Any, ...]) -> Any:
        """The first call with arguments of a kind."""
        kind = Kind(tuple(signature_of(argument) for argument in arguments), None)
        self.keep(kind)
        kind.reason = DROPPED.reasons.get(self.name, self.retired)
        if kind.reason is not None:
            return self.eager(arguments)
        try:
            check_devices(arguments[: self.arity], self.device)
            kind.plan = server().plan(self.graph, self.index, arguments[: self.arity], self.device)
        except (PlanError, RemoteError, BackendError) as error:
            kind.reason = f"no plan: {error}"
            return self.eager(arguments)
        if self.options.verify == "never":
            self.native.teach(kind.plan, arguments)
            return self.function(*arguments)
        result = self.compare(kind, kind.plan, arguments)
        if kind.plan is not None and self.options.measure:
            self.measure(kind, kind.plan, arguments)
        plan = kind.plan
        if plan is not None:
            self.native.teach(plan, arguments)
        return result

    def keep(self, kind: Kind) -> None:
        """One kind more; where there are too many, the oldest are forgotten, here and in the runner."""
        if len(self.kinds) >= self.options.plans:
            self.kinds = []
            self.native = Native(self)
            self.function = self.native.function
            self.rebind(self.function)
        self.kinds.append(kind)

    def copies(self, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
        """The arguments, with memory of their own where the wrapper may write."""
        return tuple(
            copy_of(value) if index in self.written and isinstance(value, torch.Tensor) else value
            for index, value in enumerate(arguments)
        )

    def compare(self, kind: Kind, plan: Plan, arguments: tuple[Any, ...]) -> Any:
        """Eager's result. The plan ran before, on copies of what it may write."""
        given = self.copies(arguments)
        before = self.copies(arguments) if self.writes else arguments
        try:
            found = plan(given)
            problem = None
        except PlanError as error:
            found, problem = None, f"its kernels failed: {error}"
        expected = self.eager(arguments)
        kind.checks += 1
        if problem is None:
            taken = [before[index] for index in self.inputs]
            truth = lambda: in_double(self.region)(*widened(taken))  # noqa: E731
            problem = difference(expected, found, truth)
        if problem is None:
            updated = [(arguments[index], given[index]) for index in sorted(self.writes)]
            problem = difference([one for one, _ in updated], [two for _, two in updated], lambda: None)
        if problem is not None and self.under_autocast:
            self.become_eager(f"under autocast, {problem}")
        elif problem is not None:
            kind.plan, kind.reason = None, problem
            DROPPED.drop(self.name, f"{problem} in place of {', '.join(self.removed)}")
        elif other_layout(expected, found):
            kind.plan, kind.reason = None, "its output is laid out in memory as eager's is not"
        elif not self.writes and shares_memory(expected, arguments) != shares_memory(found, given):
            kind.plan, kind.reason = None, "its output shares memory with an input where eager's does not, or does not"
        return expected

    def measure(self, kind: Kind, plan: Plan, arguments: tuple[Any, ...]) -> None:
        """Leaves the region to eager where that is faster. Regions alike, which models have in every layer, are timed once."""
        key = (self.name, len(self.removed), self.options.cuda_graphs, kind.signature)
        try:
            kind.seconds = MEASURED.get(key) or self.seconds(plan, arguments)
        except PlanError as error:
            kind.plan, kind.reason = None, f"its kernels failed: {error}"
            DROPPED.drop(self.name, kind.reason)
            return
        if len(MEASURED) >= MOST_MEASURED:
            MEASURED.clear()
        MEASURED[key] = kind.seconds
        if kind.seconds[1] > kind.seconds[0]:
            eager, ours = (f"{seconds * 1e6:.1f} µs" for seconds in kind.seconds)
            kind.plan, kind.reason = None, f"slower than eager: {ours} instead of {eager}"

    def seconds(self, plan: Plan, arguments: tuple[Any, ...]) -> tuple[float, float]:
        """Of a call of the region: eager's, and the pass's."""
        arguments = self.copies(arguments)
        # A function of its own: one that knows a plan cannot forget it.
        native = Native(self)
        native.teach(plan, arguments)
        ways = (lambda: self.eager(arguments), lambda: native.function(*arguments))
        times: tuple[list[float], list[float]] = ([], [])
        with alone(self.device):
            once = [self.seconds_of(way, 1) for way in ways]
            calls = max(1, min(CALLS, int(SECONDS / max(min(once), 1e-9))))
            for _ in range(TURNS):
                for way, seconds in zip(ways, times):
                    seconds.append(self.seconds_of(way, calls))
        # Whatever else runs on the machine only adds.
        return min(times[0]), min(times[1])

    def seconds_of(self, way: Callable[[], Any], calls: int) -> float:
        return seconds_of(way, self.device, calls, self.options.cuda_graphs)

    def become_eager(self, reason: str) -> None:
        """Without the lock, which another thread may hold while it waits for ours: each of these is one step."""
        self.retired = reason
        for kind in self.kinds:
            kind.plan, kind.reason = None, reason
        self.function = self.eager_call
        self.rebind(self.function)

    @property
    def state(self) -> str:
        if self.name in DROPPED.reasons:
            return "dropped"
        if any(kind.plan is not None for kind in self.kinds):
            return "used"
        return "eager" if self.kinds else "not called yet"
