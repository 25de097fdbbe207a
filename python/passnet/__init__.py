"""The PyTorch side of PassNet."""

from typing import Any

# What needs PyTorch is imported when it is asked for: most of this package runs without.
_OF_THE_BACKEND = ("report", "passnet_backend", "wait_for_solver")


def __getattr__(name: str) -> Any:
    if name not in _OF_THE_BACKEND:
        raise AttributeError(f"module 'passnet' has no attribute {name!r}")
    from passnet import backend

    return getattr(backend, name)
