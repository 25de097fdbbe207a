"""transformers: every model class with its head, from its configuration's defaults, and in the family's other sizes.

Classes are found by reading the package's `__all__` lists as syntax: importing all of them takes minutes.
"""

from __future__ import annotations

import ast
import importlib
import importlib.util
import json
from pathlib import Path
from typing import Any

from ..errors import CaptureError
from ..model import Entry, Model
from .transformers_inputs import inputs_of

_FAMILY = "transformers-auto-model"
# These folders hold wrappers around models of other folders.
_SKIPPED = {"auto", "timm_backbone", "timm_wrapper", "deprecated"}


def entries() -> list[Entry]:
    sizes = json.loads((Path(__file__).parent / "transformers_sizes.json").read_text())
    found = []
    for folder, module, name in _classes():
        found.append(Entry(_FAMILY, name, "transformers", {"module": module, "class": name}))
        for size, changes in sizes.get(folder, {}).items():
            options = {"module": module, "class": name, "changes": changes}
            found.append(Entry(_FAMILY, f"{name}_{size}", "transformers", options))
    return found


def build(entry: Entry) -> Model:
    module = importlib.import_module(entry.options["module"])
    made = getattr(module, entry.options["class"])
    return prepared(made, configuration(made, entry.options.get("changes", {})))


def configuration(made: Any, changes: dict[str, Any]) -> Any:
    """The default configuration of a class, with some settings of another size."""
    if getattr(made, "config_class", None) is None:
        raise CaptureError("no configuration", f"{made.__name__} names no configuration class")
    config = made.config_class()
    _change(config, changes)
    return config


def prepared(made: Any, config: Any) -> Model:
    """A model class with a configuration, ready for capture."""
    for part in (config, *_parts(config)):
        if hasattr(part, "use_cache"):
            part.use_cache = False
        # The default calls an operation of the package's own, which no graph can carry.
        part._experts_implementation = "batched_mm"
    return inputs_of(made(config), config)


def _classes() -> list[tuple[str, str, str]]:
    """Folder, module and class of every model."""
    found_package = importlib.util.find_spec("transformers")
    if found_package is None or found_package.origin is None:
        raise CaptureError("missing package", "transformers is not installed")
    found = []
    for file in sorted((Path(found_package.origin).parent / "models").glob("*/modeling_*.py")):
        folder = file.parent.name
        if folder in _SKIPPED:
            continue
        module = f"transformers.models.{folder}.{file.stem}"
        found += [(folder, module, name) for name in _exported(file) if not name.endswith("PreTrainedModel")]
    return found


def _exported(file: Path) -> list[str]:
    for statement in ast.parse(file.read_text()).body:
        if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
            if statement.targets[0].id == "__all__":
                return sorted(name for name in ast.literal_eval(statement.value) if name[0].isupper())
    return []


def _parts(config: Any) -> list[Any]:
    """Configurations inside a configuration."""
    return [value for value in vars(config).values() if hasattr(value, "to_dict") and hasattr(value, "model_type")]


def _change(config: Any, changes: dict[str, Any]) -> None:
    for name, value in changes.items():
        if isinstance(value, dict):
            _change(getattr(config, name), value)
        else:
            setattr(config, name, value)
