"""`torch.compile(model, backend="passnet")`: regions of a model's graphs replaced by the passes of a library.

Dynamo's graph goes as text to the `passnet` program, in a process of its own (`server.py`), which matches the library's
passes and answers with names of nodes and, on request, launch plans. No pass is ever imported here: plans are replayed by the
native runner (`site.py`). All other nodes run as they are, or through TorchInductor.
"""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import Any

import torch
import torch.fx

from . import fastest, reporting
from .compiled import CompiledGraph, is_symbolic, warn_once
from .graph_text import RETRIES, refused_statement, write
from .options import OptionError, Options
from .reporting import Report, report
from .rewriting import Rewritten, rewrite
from .server import BackendError, server
from .site import DROPPED, PassWarning
from .solving import Solving, wait_for_solver

__all__ = ["BackendError", "OptionError", "PassWarning", "Report", "passnet_backend", "report", "wait_for_solver"]

told: set[str] = set()

TRAINING = (
    "the graph is to be differentiated, for which no pass is made, so it runs as eager PyTorch; "
    "call the model under torch.inference_mode() or torch.no_grad()"
)


def passnet_backend(graph_module: torch.fx.GraphModule, example_inputs: list[Any], **given: Any) -> Any:
    """What dynamo calls with each graph."""
    options = Options.of(given.get("options"), given.get("mode"))
    reason = _why_not(graph_module, example_inputs)
    if reason is not None:
        reporting.left(reason, graph_module.graph)
        return graph_module.forward
    if options.solve:
        return Solved(graph_module, example_inputs, options)
    return _compiled_or_left(graph_module, example_inputs, options, [])


class Solved:
    """A graph that the solver looks at in its first call: it takes real inputs to know what they are like.

    In the background, calls run with what the library has meanwhile; the first one after the solver is done compiles the graph
    anew, and verifies what it replaces as every first call does.
    """

    def __init__(self, graph_module: torch.fx.GraphModule, examples: list[Any], options: Options) -> None:
        self.graph_module, self.examples, self.options = graph_module, examples, options
        self.lock = threading.Lock()
        self.compiled: Any = None
        # What the compiled graph does not have yet.
        self.solving: Solving | None = None

    def __call__(self, *inputs: Any) -> Any:
        if self.compiled is None or (self.solving is not None and self.solving.note is not None):
            with self.lock:
                self.compile(inputs)
        return self.compiled(*inputs)

    def compile(self, inputs: tuple[Any, ...]) -> None:
        """Another thread may have been here."""
        if self.compiled is None:
            solving = Solving(self.graph_module, list(inputs), device_of(list(inputs)), self.options)
            if self.options.solve_in_background and solving.note is None:
                self.compiled = self.with_note("the solver is at work")
                self.solving = solving
                solving.solve_in_background()
            else:
                self.compiled = self.with_note(solving.solve())
        elif self.solving is not None and self.solving.note is not None:
            note, self.solving = self.solving.note, None
            self.compiled = self.with_note(note)

    def with_note(self, note: str) -> Any:
        return _compiled_or_left(self.graph_module, self.examples, self.options, [note])


def _compiled_or_left(
    graph_module: torch.fx.GraphModule, inputs: list[Any], options: Options, notes: list[str]
) -> Any:
    try:
        compiled, answer = _compile(graph_module, inputs, options)
    except BackendError as error:
        warn_once(str(error), told)
        reporting.left(str(error), graph_module.graph)
        return graph_module.forward
    answer["notes"] += notes
    if compiled is None:
        reporting.left("no pass of the library fits", graph_module.graph, answer)
        return graph_module.forward
    reporting.remember(compiled)
    return compiled


def _why_not(graph_module: torch.fx.GraphModule, inputs: list[Any]) -> str | None:
    """Why a graph is left as it is."""
    if torch.is_grad_enabled() and any(isinstance(v, torch.Tensor) and v.requires_grad for v in inputs):
        warn_once(TRAINING, told)
        return "it is to be differentiated"
    kinds = {v.device.type for v in inputs if isinstance(v, torch.Tensor)} | {"cpu"}
    other = kinds - {"cpu", "cuda", "meta"}
    return f"there are no plans for {sorted(other)[0]}" if other else None


def device_of(inputs: list[Any]) -> torch.device:
    """Where a graph computes: on the GPU of its inputs, if there is one."""
    devices = [v.device for v in inputs if isinstance(v, torch.Tensor)]
    gpu = next((device for device in devices if device.type == "cuda"), None)
    if gpu is None:
        return torch.device("cpu")
    return gpu if gpu.index is not None else torch.device("cuda", torch.cuda.current_device())


def _described(device: torch.device) -> dict[str, Any]:
    if device.type == "cpu":
        return {"kind": "cpu"}
    capability = list(torch.cuda.get_device_capability(device))
    return {"kind": "cuda", "name": torch.cuda.get_device_name(device), "capability": capability}


def _compile(
    graph_module: torch.fx.GraphModule, inputs: list[Any], options: Options
) -> tuple[CompiledGraph | None, dict[str, Any]]:
    """The graph at work, or nothing where no pass fits, and what the matcher said."""
    device = device_of(inputs)
    choice = _chosen_before(graph_module, inputs, options, device)
    if choice is not None and choice.way in fastest.WITHOUT_PASSES:
        # No pass is wanted: nobody need be asked which of them fit.
        answer = {"graph": None, "passed_over": [], "notes": ["the way was chosen before"], "writes_inputs": False}
        nothing = Rewritten(graph_module.graph, [], [])
        return CompiledGraph(graph_module, nothing, options, answer, inputs, device, "", choice), answer
    opaque: set[str] = set()
    for _ in range(RETRIES):
        text = write(graph_module, opaque)
        question = {
            "call": "match",
            "text": text.code,
            "library": options.library,
            "trust": options.trust,
            "device": _described(device),
            "without": sorted(DROPPED.reasons),
        }
        try:
            answer = server().ask(question)
        except BackendError as error:
            name = refused_statement(text, str(error))
            if name is None or name in opaque:
                raise
            opaque.add(name)
            continue
        if choice is not None:
            timed = replace(options, measure=False)
            rewritten = rewrite(graph_module, text, answer, timed, device, choice.kept)
            if len(rewritten.sites) != len(choice.kept):
                choice = None
        if choice is None:
            rewritten = rewrite(graph_module, text, answer, options, device)
        if not rewritten.sites and not options.cuda_graphs and options.rest == "eager":
            return None, answer
        return CompiledGraph(graph_module, rewritten, options, answer, inputs, device, text.code, choice), answer
    raise BackendError("too many statements of the graph cannot be read")


def _chosen_before(
    graph_module: torch.fx.GraphModule, inputs: list[Any], options: Options, device: torch.device
) -> fastest.Choice | None:
    """What an earlier process found to be the fastest way, with the passes that stay in it."""
    if options.rest != "fastest" or is_symbolic(inputs):
        return None
    key = fastest.early_key(graph_module.graph, inputs, device, sorted(DROPPED.reasons), options)
    choice = fastest.remembered(options.library, key)
    return choice if choice is not None and choice.kept is not None else None
