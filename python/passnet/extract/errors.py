"""Why a model gave no graph: a short kind to count by, and a sentence for people."""

from __future__ import annotations


class CaptureError(Exception):
    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message
