"""What `torch.compile(model, backend="passnet", options={…})` may be told."""

from __future__ import annotations

import os
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

VERIFY = ("first-call", "always", "never")
REST = ("eager", "inductor", "fastest")
TRUST = ("none", "judged", "all")
INDUCTOR_MODES = ("default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs")


class OptionError(ValueError):
    """An option that does not exist, or a value that it does not take."""


@dataclass(frozen=True)
class Options:
    # The folder of the library; else PASSNET_LIBRARY, or the user's own.
    library: str = ""
    # When outputs of replaced regions are held against eager's.
    verify: str = "first-call"
    # Which passes are used: those with evidence for this device, those and others after they were judged, or all.
    trust: str = "judged"
    # What runs where no pass fits; `fastest` times several ways at the first call and keeps one.
    rest: str = "eager"
    # The mode of TorchInductor, with rest="inductor".
    inductor_mode: str = "default"
    # Whether TorchInductor may take the weights for constants, as long as they are not updated.
    freeze: bool = False
    # Whether a region keeps its pass only where the pass is faster than eager on the first call's inputs.
    measure: bool = True
    # Whether whole graphs are recorded, by shape, and replayed (CUDA).
    cuda_graphs: bool = False
    # Whether the solver writes passes for what the library does not cover, and how long it may take for a graph.
    solve: bool = False
    solve_seconds: float = 120.0
    # Whether calls go on meanwhile with what there is.
    solve_in_background: bool = False
    # Plans kept for each replaced region: one for each kind of arguments.
    plans: int = 64

    def __post_init__(self) -> None:
        known = {"verify": VERIFY, "rest": REST, "trust": TRUST, "inductor_mode": INDUCTOR_MODES}
        for name, values in known.items():
            value = getattr(self, name)
            if value not in values:
                raise OptionError(f"passnet: {name}={value!r} is none of {', '.join(values)}")
        if not isinstance(self.plans, int) or self.plans < 1:
            raise OptionError(f"passnet: plans={self.plans!r} is no number of plans")
        if not isinstance(self.solve_seconds, (int, float)) or not self.solve_seconds > 0:
            raise OptionError(f"passnet: solve_seconds={self.solve_seconds!r} is no time")
        if self.freeze and self.rest == "eager":
            raise OptionError("passnet: freeze=True is for rest='inductor' and rest='fastest'")
        if self.freeze and self.inductor_mode != "default":
            raise OptionError("passnet: freeze=True goes with no inductor_mode of its own")
        if not self.library:
            object.__setattr__(self, "library", default_library())

    @classmethod
    def of(cls, given: dict[str, Any] | None, mode: str | None = None) -> Options:
        """The options of a call of `torch.compile`, and its mode: `reduce-overhead` asks for CUDA graphs."""
        if mode not in (None, "default", "reduce-overhead"):
            raise OptionError(f"passnet: there is no mode {mode!r}; options={{'rest': 'inductor'}} has modes of its own")
        known = {field.name for field in fields(cls)}
        unknown = sorted(set(given or {}) - known)
        if unknown:
            raise OptionError(f"passnet: there is no option {unknown[0]!r}; there are {', '.join(sorted(known))}")
        values = {"cuda_graphs": True} if mode == "reduce-overhead" else {}
        values |= given or {}
        if "library" in values:
            values["library"] = str(values["library"])
        return cls(**values)


def default_library() -> str:
    """As the command line has it."""
    named = os.environ.get("PASSNET_LIBRARY")
    if named:
        return named
    root = os.environ.get("XDG_DATA_HOME") or str(Path.home() / ".local/share")
    return str(Path(root) / "passnet" / "library")
