"""diffusers: U-Nets, transformers, control networks and autoencoders, in the sizes that were published.

`diffusers_configurations.json` names for each class its published models, and what each changes of the class's defaults.
"""

from __future__ import annotations

import json
from pathlib import Path

from ..errors import CaptureError
from ..model import Entry, Model
from .diffusers_inputs import inputs_of

_CONFIGURATIONS = Path(__file__).parent / "diffusers_configurations.json"


def entries() -> list[Entry]:
    table = json.loads(_CONFIGURATIONS.read_text())
    return [
        Entry("diffusers", f"{made}_{size}", "diffusers", {"class": made, "changes": changes})
        for made, sizes in table.items()
        for size, changes in sizes.items()
    ]


def build(entry: Entry) -> Model:
    import diffusers

    name = entry.options["class"]
    made = getattr(diffusers, name, None)
    if made is None:
        raise CaptureError("unknown architecture", f"diffusers {diffusers.__version__} has no {name}")
    module = made(**{key: _sequence(value) for key, value in entry.options["changes"].items()})
    return inputs_of(name, module)


def _sequence(value: object) -> object:
    """JSON has lists where the classes compare with tuples."""
    return tuple(_sequence(item) for item in value) if isinstance(value, list) else value
