"""A graph of a program at work: what dynamo calls."""

from __future__ import annotations

import contextlib
import functools
import gc
import random
import threading
import warnings
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import torch.fx

from passnet.worker.plans import LaunchError

from . import fastest, inductor
from .cuda_graph import Lane, Recorder
from .fastest import Choice
from .frozen import Frozen
from .options import Options
from .rewriting import Rewritten, without
from .server import BackendError, server
from .site import DROPPED, PassWarning, Site
from .timing import seconds_of

# Later calls that are checked, one at random from each of these ranges.
RECHECKED = ((1, 20), (20, 200), (200, 2000))


@dataclass
class Unsettled:
    """What is needed until regions have been timed."""

    rewritten: Rewritten
    examples: list[Any]
    # What dynamo knows of the graph: without it, TorchInductor does not look into its cache.
    context: Any
    # Passes that were not to be used when the graph was matched.
    dropped: list[str]


class CompiledGraph:
    """The rewritten graph as two functions of the same text: in one, sites are replayed, in the other they are checked."""

    def __init__(
        self,
        original: torch.fx.GraphModule,
        rewritten: Rewritten,
        options: Options,
        answer: dict[str, Any],
        examples: list[Any],
        device: torch.device,
        code: str,
        choice: Choice | None = None,
    ) -> None:
        self.original, self.sites, self.options, self.answer = original, rewritten.sites, options, answer
        self.lock = threading.Lock()
        self.calls = 0
        self.rechecked = {random.randrange(*span) for span in RECHECKED} if options.verify == "first-call" else set()
        self.always = options.verify == "always"
        self.writes_inputs = bool(answer["writes_inputs"])
        self.bind(rewritten)
        self.fast = self.replayed
        # A recording would update its own copies of inputs.
        is_recorded = options.cuda_graphs and not self.writes_inputs
        self.recorder = Recorder(original.graph, device) if is_recorded else None
        self.device = device
        # How this graph runs, by `fastest.py`; to be found out in the first call where nothing is there.
        self.way: str | None = fastest.EAGER
        # An operator of TorchInductor's runs with autocast switched off.
        self.under_autocast = any(site.under_autocast for site in self.sites)
        self.times: dict[str, float] = {}
        # The graph with its weights as constants, where that is its way.
        self.frozen: Frozen | None = None
        # What it goes instead where they change too often.
        self.if_thawed: Callable[[], tuple[str, Callable[..., Any]]] | None = None
        # What the first call, in which the regions are timed, leaves to do: nothing in a graph for several sizes, whose regions are
        # timed whenever a new one comes.
        self.unsettled: Unsettled | None = None
        if options.rest == "inductor" and (is_symbolic(examples) or options.inductor_mode != "default"):
            self.go_at_once(rewritten, examples)
        elif not is_symbolic(examples):
            self.unsettled = Unsettled(rewritten, examples, torch._guards.TracingContext.try_get(), sorted(DROPPED.reasons))
            if choice is not None:
                self.way = choice.way
                self.settle_at_once()
            elif options.rest != "eager":
                self.way = self.known_way(code, examples)
                if self.way in fastest.WITHOUT_PASSES:
                    self.settle_at_once()
        if answer["graph"] is not None:
            weakref.finalize(self, drop_graph, server(), answer["graph"])

    def known_way(self, code: str, examples: list[Any]) -> str | None:
        """The way that is wanted, or that was the fastest in an earlier process."""
        if self.options.rest == "inductor":
            is_frozen = self.options.freeze and not self.writes_inputs and not self.under_autocast
            return fastest.FROZEN_INDUCTOR if is_frozen else fastest.INDUCTOR
        if self.writes_inputs:
            return fastest.EAGER
        passes = [*sorted(site.name for site in self.sites), *([fastest.FROZEN] if self.options.freeze else [])]
        self.key = fastest.key_of(code, examples, self.device, passes, self.recorder is not None)
        known = fastest.remembered(self.options.library, self.key)
        if known is None:
            return None
        if known.way in fastest.WITHOUT_PASSES:
            self.note(known.way, [])
        return known.way

    def note(self, way: str, kept: list[Site]) -> None:
        """For the next process, which then need not ask what fits."""
        if not kept:
            # Passes of which none is left are no passes.
            way = {fastest.EAGER: fastest.PLAIN, fastest.INDUCTOR: fastest.ALONE}.get(way, way)
        elif way in fastest.WITHOUT_PASSES:
            kept = []
        choice = Choice(way, frozenset(tuple(site.removed) for site in kept))
        examples, dropped = self.unsettled.examples, self.unsettled.dropped
        key = fastest.early_key(self.original.graph, examples, self.device, dropped, self.options)
        fastest.remember(self.options.library, key, choice)

    def go_at_once(self, rewritten: Rewritten, examples: list[Any]) -> None:
        """TorchInductor may compile for some sizes only, which dynamo must learn before it is done with the graph, and its
        recordings ask dynamo which inputs keep their places."""
        if is_symbolic(examples) and torch._guards.TracingContext.try_get() is None:
            self.answer["notes"].append("sizes are symbolic, and TorchInductor can no longer say for which it compiles")
        else:
            self.go(fastest.INDUCTOR, self.through_inductor(fastest.INDUCTOR, rewritten, examples))

    def settle_at_once(self) -> None:
        """Nothing has to be timed, no region is to be given back: the way is known, and where it has passes, which ones."""
        known, way = self.unsettled, self.way
        if way == fastest.FROZEN:
            # Weights are known in the first call.
            return
        if way in (fastest.INDUCTOR, fastest.ALONE):
            call = self.through_inductor(way, known.rewritten, known.examples)
        else:
            call = self.replayed if way == fastest.EAGER else self.original.forward
        self.go(way, call)
        self.unsettled = None

    def through_inductor(self, way: str, rewritten: Rewritten, examples: list[Any]) -> Callable[..., Any]:
        if way == fastest.INDUCTOR and self.under_autocast:
            self.answer["notes"].append("under autocast, TorchInductor compiles the whole graph, without passes")
            way = fastest.ALONE
        if way == fastest.ALONE:
            rewritten = Rewritten(self.original.graph, [], [])
        # Dynamo is done with this graph where it is compiled in its first call.
        known = self.unsettled.context if self.unsettled is not None else None
        is_inside = known is None or torch._guards.TracingContext.try_get() is not None
        with contextlib.nullcontext() if is_inside else torch._guards.tracing(known):
            return inductor.compiled(self.original, rewritten, examples, self.options.inductor_mode)

    def frozen_way(self, way: str, rewritten: Rewritten, examples: list[Any], inputs: tuple[Any, ...]) -> Frozen:
        if way == fastest.FROZEN:
            rewritten = Rewritten(self.original.graph, [], [])
        self.if_thawed = functools.partial(self.unfrozen, way, rewritten, examples)
        return Frozen(self.original, inductor.lowered(self.original, rewritten), inputs, examples)

    def frozen_or(self, way: str, rewritten: Rewritten, inputs: tuple[Any, ...]) -> tuple[str, Callable[..., Any]]:
        """A way with the weights as constants, or the same without where that cannot be."""
        examples = self.unsettled.examples
        try:
            return way, self.frozen_way(way, rewritten, examples, inputs)
        except Exception as error:  # noqa: BLE001 - a way that cannot be gone is not gone
            self.answer["notes"].append(f"{way}: {first_line(error)}")
            return self.unfrozen(way, rewritten, examples)

    def unfrozen(self, way: str, rewritten: Rewritten, examples: list[Any]) -> tuple[str, Callable[..., Any]]:
        other = fastest.ALONE if way == fastest.FROZEN else fastest.INDUCTOR
        return other, self.through_inductor(other, rewritten, examples)

    def thawed(self, inputs: tuple[Any, ...]) -> Any:
        """A call whose weights are not those that were frozen."""
        with self.lock:
            if self.frozen is not None and not self.frozen.holds(inputs) and self.frozen.is_to_be_renewed(inputs):
                self.renew(inputs)
        return self.replayed(*inputs)

    def renew(self, inputs: tuple[Any, ...]) -> None:
        """Weights that have changed are frozen anew, or left as what they are."""
        with fastest.same_draws(self.device):
            try:
                self.frozen.renew(inputs)
                self.answer["notes"].append(f"{self.way}: weights have changed and were frozen anew")
            except Exception as error:  # noqa: BLE001 - a way that cannot be gone is not gone
                self.answer["notes"].append(f"{self.way}: given up: {first_line(error)}")
                self.go(*self.if_thawed())
        if self.recorder is not None:
            self.recorder.forget()

    def go(self, way: str, call: Callable[..., Any]) -> None:
        self.frozen = call if isinstance(call, Frozen) else None
        if self.frozen is None:
            self.if_thawed = None
        self.way, self.fast = way, call
        if way in fastest.WITHOUT_PASSES:
            # There is no pass to check.
            self.rechecked = set()

    def settle(self, inputs: tuple[Any, ...]) -> None:
        """After the first call: regions that stay eager's become the program's own nodes again, and the graph goes its way."""
        with self.lock, fastest.same_draws(self.device):
            if self.unsettled is None:
                return
            idle = [site for site in self.sites if site.state != "used"]
            rewritten = self.unsettled.rewritten
            if idle:
                rewritten = without(rewritten, idle)
                self.bind(rewritten)
            best, call, examples = self.way, self.replayed, self.unsettled.examples
            if best is None:
                best, call = self.raced(rewritten, examples, inputs)
                fastest.remember(self.options.library, self.key, Choice(best))
                # What the other ways held goes before the way that stays is recorded.
                gc.collect()
            elif best == fastest.INDUCTOR:
                call = self.through_inductor(best, rewritten, examples)
            elif best in (fastest.FROZEN, fastest.FROZEN_INDUCTOR):
                best, call = self.frozen_or(best, rewritten, inputs)
            elif self.is_slower_as_a_whole(rewritten, inputs):
                best, call = fastest.PLAIN, self.original.forward
            if self.options.rest == "fastest" and not self.writes_inputs:
                self.note(best, rewritten.sites)
            self.go(best, call)
            # From here on calls of other threads do not wait.
            self.unsettled = None

    def raced(
        self, rewritten: Rewritten, examples: list[Any], inputs: tuple[Any, ...]
    ) -> tuple[str, Callable[..., Any]]:
        """The fastest way. Recordings are made of all of them, in memory that goes with them."""
        calls = {fastest.EAGER: self.replayed}
        if rewritten.sites:
            calls[fastest.PLAIN] = self.original.forward
        is_worth = not self.under_autocast and self.is_worth(rewritten.sites, inputs)
        for way in (fastest.INDUCTOR, fastest.ALONE) if is_worth else (fastest.ALONE,):
            try:
                call = self.through_inductor(way, rewritten, examples)
                call(*inputs)
                calls[way] = call
            except Exception as error:  # noqa: BLE001 - a way that cannot be gone is not gone
                self.answer["notes"].append(f"{way}: {first_line(error)}")
        if self.options.freeze and not self.under_autocast:
            try:
                calls[fastest.FROZEN] = self.frozen_way(fastest.FROZEN, rewritten, examples, inputs)
            except Exception as error:  # noqa: BLE001 - a way that cannot be gone is not gone
                self.answer["notes"].append(f"{fastest.FROZEN}: {first_line(error)}")
        lane = Lane(self.device)
        recorders = {way: Recorder(self.original.graph, self.device, lane) for way in calls} if self.recorder else {}

        def run(way: str) -> Any:
            return recorders[way](calls[way], inputs) if recorders else calls[way](*inputs)

        self.times = fastest.race({way: functools.partial(run, way) for way in calls}, self.device)
        best = min(self.times, key=self.times.__getitem__)
        return best, calls[best]

    def is_slower_as_a_whole(self, rewritten: Rewritten, inputs: tuple[Any, ...]) -> bool:
        """Whether passes, each faster than its region, slow down the graph: they share caches and cores with what is around them.
        What `fastest` chose before is known, and a recording has no work of the host's in it."""
        options = self.options
        if options.rest != "eager" or not (options.measure and rewritten.sites) or self.recorder or self.writes_inputs:
            return False
        ways = {fastest.EAGER: self.replayed, fastest.PLAIN: self.original.forward}
        self.times = fastest.race({way: functools.partial(call, *inputs) for way, call in ways.items()}, self.device)
        return self.times[fastest.PLAIN] < self.times[fastest.EAGER]

    def is_worth(self, sites: list[Site], inputs: tuple[Any, ...]) -> bool:
        """Whether passes save so much of a call that TorchInductor is to compile the graph with them, beside the graph alone."""
        seconds = [kind.seconds for site in sites for kind in site.kinds[-1:] if kind.plan is not None]
        if self.recorder is not None or not all(seconds):
            # Of a recording, only times of the device are known before it is made.
            return bool(sites)
        whole = seconds_of(lambda: self.replayed(*inputs), self.device, 1, False)
        return sum(eager - ours for eager, ours in seconds) > fastest.WORTH * whole

    def bind(self, rewritten: Rewritten) -> None:
        """Makes this graph the one that runs, with the functions that its sites have now."""
        self.graph = rewritten.graph
        if rewritten.graph is self.original.graph:
            # Dynamo's own graph has its function.
            self.checked = self.replayed = self.original.forward
            return
        self.checked, _ = self.bound(rewritten, [site.checked for site in rewritten.sites])
        self.replayed, rebinds = self.bound(rewritten, [site.function for site in rewritten.sites])
        weak = weakref.ref(self)
        for site, rebind in zip(rewritten.sites, rebinds):
            site.rebind = functools.partial(rebound, weak, rebind)

    def bound(
        self, rewritten: Rewritten, functions: list[Callable[..., Any]]
    ) -> tuple[Callable[..., Any], list[Callable[[Callable[..., Any]], None]]]:
        """The graph as a function, and for each site what puts another function in its place."""
        source = rewritten.graph.python_code("self")
        scope: dict[str, Any] = dict(source.globals)
        names = {id(value): name for name, value in scope.items()}
        rebinds = []
        for stand_in, function in zip(rewritten.stand_ins, functions):
            name = names[id(stand_in)]
            scope[name] = function
            rebinds.append(lambda other, name=name: scope.__setitem__(name, other))
        # FX's own text of the program's own nodes.
        exec(compile(source.src, f"<passnet graph {self.answer['graph']}>", "exec"), scope)
        module, forward = self.original, scope["forward"]
        return lambda *inputs: forward(module, *inputs), rebinds

    def forget(self) -> None:
        """A site has another function: what was recorded with the old one is not replayed any more."""
        if self.recorder is not None:
            self.recorder.forget()
        if self.way in (fastest.INDUCTOR, fastest.FROZEN_INDUCTOR) and any(site.name in DROPPED.reasons for site in self.sites):
            # Recordings of TorchInductor's are not ours to clear.
            self.go(fastest.EAGER, self.replayed)

    def __call__(self, *inputs: Any) -> Any:
        number = self.calls
        self.calls = number + 1
        if self.writes_inputs and overlap(inputs):
            # The matcher takes different inputs for different memory.
            return self.original(*inputs)
        if self.always or number in self.rechecked:
            return self.checked(*inputs)
        try:
            if self.unsettled is not None:
                result = self.replayed(*inputs)
                self.settle(inputs)
                return result
            if self.frozen is not None and not self.frozen.holds(inputs):
                return self.thawed(inputs)
            if self.recorder is not None and number > 0:
                return self.recorder(self.fast, inputs)
            return self.fast(*inputs)
        except LaunchError as error:
            return self.after_failure(error, inputs)

    def after_failure(self, error: LaunchError, inputs: tuple[Any, ...]) -> Any:
        """A kernel failed in a call that was not checked: nothing of this graph is replaced any more."""
        names = ", ".join(sorted({site.name for site in self.sites}))
        for site in self.sites:
            DROPPED.drop(site.name, f"a kernel of {names} failed: {error}")
        if self.writes_inputs:
            raise RuntimeError(f"a kernel of {names} failed after inputs may have been updated: {error}") from error
        return self.original(*inputs)


def is_symbolic(examples: list[Any]) -> bool:
    """Whether the graph is for several sizes."""
    return any(
        isinstance(value, torch.SymInt)
        or isinstance(value, torch.Tensor) and any(isinstance(size, torch.SymInt) for size in value.shape)
        for value in examples
    )


def rebound(
    graph: weakref.ref[CompiledGraph], rebind: Callable[[Callable[..., Any]], None], function: Callable[..., Any]
) -> None:
    """Puts another function in the place of a site's."""
    rebind(function)
    living = graph()
    if living is not None:
        living.forget()


def drop_graph(known: Any, graph: int) -> None:
    """Nobody asks for plans of a graph that is gone."""
    if known.is_ours():
        try:
            known.ask({"call": "drop", "graph": graph})
        except BackendError:
            # The other process is gone, and with it the plans.
            pass


def overlap(inputs: tuple[Any, ...]) -> bool:
    """Whether two inputs lie in one memory."""
    seen: set[int] = set()
    for value in inputs:
        if isinstance(value, torch.Tensor) and value.numel():
            address = value.untyped_storage().data_ptr()
            if address in seen:
                return True
            seen.add(address)
    return False


def first_line(error: Exception) -> str:
    lines = str(error).strip().splitlines() or [""]
    return f"{type(error).__name__}: {lines[0]}"


def warn_once(text: str, told: set[str]) -> None:
    if text not in told:
        told.add(text)
        warnings.warn(f"passnet: {text}", PassWarning, stacklevel=3)
