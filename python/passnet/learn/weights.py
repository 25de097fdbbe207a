"""A model and its tokenizer, from a Hugging Face folder or a GGUF file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
import transformers

from passnet.learn.job import JobError

_DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}


def load(path: str, device: str, dtype: str | None = None) -> tuple[Any, Any]:
    """The model, frozen and in evaluation mode, and its tokenizer. Nothing is fetched from anywhere."""
    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    place = Path(path)
    if place.is_file():
        where: dict[str, Any] = {"gguf_file": place.name}
        folder = str(place.parent)
        _need_gguf()
    elif (place / "config.json").is_file():
        where, folder = {}, str(place)
    else:
        raise JobError(f"{path}: neither a GGUF file nor a folder with config.json")
    kind = _DTYPES.get(dtype or ("float32" if device == "cpu" else "bfloat16"))
    if kind is None:
        raise JobError(f"no type of weights is called `{dtype}`")
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder, local_files_only=True, **where)
    if tokenizer.chat_template is None:
        raise JobError(f"{path}: the tokenizer has no chat template, so nobody can talk to this model")
    if tokenizer.pad_token_id is None:
        tokenizer.pad_token = tokenizer.eos_token
    model = transformers.AutoModelForCausalLM.from_pretrained(
        folder, local_files_only=True, dtype=kind, attn_implementation="sdpa", **where
    )
    model.requires_grad_(False)
    return model.to(device).eval(), tokenizer


def _need_gguf() -> None:
    try:
        import gguf  # noqa: F401
    except ImportError as error:
        raise JobError("GGUF files need the package `gguf` in this Python (pip install gguf)") from error
