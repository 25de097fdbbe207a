"""Models that are a class of a package with settings and inputs of given sizes: what most small sources list."""

from __future__ import annotations

import importlib
from typing import Any

import torch

from ..errors import CaptureError
from ..metadata import Range
from ..model import Entry, Model


def entry(source: str, name: str, made: str, settings: dict[str, Any], inputs: list[Any], tag: str) -> Entry:
    """`made` is `package.module:Class`. An input is a size, or a size with the number that its integers stay below."""
    return Entry(source, name, source, {"class": made, "settings": settings, "inputs": inputs, "tag": tag})


def numbers(below: int, *size: int) -> dict[str, Any]:
    """An input of integers from zero."""
    return {"size": list(size), "below": below}


def build(entry: Entry) -> Model:
    place, _, name = entry.options["class"].partition(":")
    made = getattr(importlib.import_module(place), name, None)
    if made is None:
        raise CaptureError("missing package", f"{place} has no {name}")
    ranges: list[tuple[torch.Tensor, Range]] = []
    args = tuple(_input(wanted, ranges) for wanted in entry.options["inputs"])
    return Model(made(**entry.options["settings"]), args, ranges=ranges, facts={"heuristic_tag": entry.options["tag"]})


def _input(wanted: Any, ranges: list[tuple[torch.Tensor, Range]]) -> torch.Tensor:
    if isinstance(wanted, list):
        return torch.randn(*wanted)
    found = torch.randint(0, wanted["below"], wanted["size"])
    ranges.append((found, Range(0, wanted["below"] - 1)))
    return found
