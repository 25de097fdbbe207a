"""Published configurations without their weights: `config.json` files of a local mirror, or of the hub itself.

A configuration says which class of transformers it belongs to and in which sizes; the model is built from it with fresh
weights, as all others. Code that a repository brings along is never run. Repositories that differ in nothing that a graph
could show (names, labels, tokens of generation) are one model: the first of them by name is taken.

    mirror/ORG/NAME/config.json                                     copies of repositories
    mirror/models--ORG--NAME/snapshots/COMMIT/config.json           the cache of huggingface_hub
    hub, hub:N                                                      all models, or the N most downloaded, over the network
"""

from __future__ import annotations

import hashlib
import http.client
import json
import os
import re
import sys
import urllib.error
import urllib.parse
import urllib.request
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ..errors import CaptureError
from ..model import Entry, Model

SOURCE = "configuration"
FAMILY = "transformers-auto-model"
FILE = "config.json"
# Longer ones hold tables of labels or are no configurations.
MOST_BYTES = 4 << 20
SECONDS = 30
PAGE = 1_000
# What says nothing about the graph. How many labels there are does.
_SILENT = {
    "_name_or_path", "_commit_hash", "transformers_version", "label2id", "task_specific_params", "torch_dtype", "dtype",
    "use_cache", "finetuning_task", "bos_token_id", "eos_token_id", "sep_token_id", "cls_token_id", "mask_token_id",
    "decoder_start_token_id", "forced_bos_token_id", "forced_eos_token_id", "suppress_tokens", "begin_suppress_tokens",
    "language", "auto_map", "custom_pipelines", "quantization_config",
}
_SNAPSHOT = re.compile(r"(?:.*/)?models--([^/]+)/snapshots/[^/]+")


def entries(place: str) -> list[Entry]:
    """The distinct models of a mirror, or of the hub, in the order of their names or of their downloads."""
    found: list[Entry] = []
    seen: set[bytes] = set()
    names: set[str] = set()
    passed: Counter[str] = Counter()
    for repository, config in _configurations(place, passed):
        # Folders have one level, as the published set names them: ORG_NAME.
        name = re.sub(r"[^A-Za-z0-9._-]", "_", repository.replace("/", "_"))
        essence = hashlib.sha256(json.dumps(_essence(config), sort_keys=True).encode()).digest()
        if essence in seen or name in names:
            continue
        seen.add(essence)
        names.add(name)
        found.append(Entry(FAMILY, name, SOURCE, {"repository": repository, "config": config}))
    said = ", ".join(f"{count} {reason}" for reason, count in sorted(passed.items()))
    if not found:
        raise CaptureError("bad request", f"there is no {FILE} of a model in `{place}`" + (f" ({said})" if said else ""))
    if said:
        print(f"{passed.total()} files {FILE} passed over: {said}", file=sys.stderr)
    return found


def build(entry: Entry) -> Model:
    """The model of a configuration, with fresh weights."""
    import transformers

    from .transformers_models import prepared

    config = dict(entry.options["config"])
    architectures = config.get("architectures")
    names = [name for name in architectures if isinstance(name, str)] if isinstance(architectures, list) else []
    made = next((found for name in names if (found := getattr(transformers, name, None)) is not None), None)
    if made is None or not hasattr(made, "config_class"):
        said = ", ".join(names) or "no class"
        raise CaptureError("unknown architecture", f"transformers {transformers.__version__} has no {said}")
    # A configuration may point at code of its own, which is not ours to run.
    for key in ("auto_map", "quantization_config"):
        config.pop(key, None)
    return prepared(made, made.config_class.from_dict(config))


def _essence(config: Any) -> Any:
    """A configuration without what no graph shows."""
    if isinstance(config, list):
        return [_essence(item) for item in config]
    if not isinstance(config, dict):
        return config
    kept = {key: _essence(value) for key, value in config.items() if key not in _SILENT}
    if isinstance(config.get("id2label"), dict):
        kept["id2label"] = len(config["id2label"])
    return kept


def _configurations(place: str, passed: Counter[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Repositories with their configurations; what is no configuration is counted in `passed` by reason."""
    if place == "hub" or re.fullmatch(r"hub:\d+", place):
        most = int(place.partition(":")[2] or 0) or None
        yield from _of_hub(most, passed)
        return
    folder = Path(place)
    if not folder.is_dir():
        raise CaptureError("bad request", f"`{place}` is no folder; `hub` means the network")
    for path in sorted(folder.rglob(FILE)):
        try:
            with path.open("rb") as file:
                config = _parsed(file.read(MOST_BYTES + 1), passed)
        except OSError as error:
            passed[f"cannot be read ({error.strerror})"] += 1
            continue
        if config is not None:
            yield _repository(path.parent.relative_to(folder).as_posix(), folder), config


def _repository(below: str, folder: Path) -> str:
    snapshot = _SNAPSHOT.fullmatch(below)
    if snapshot:
        return snapshot[1].replace("--", "/")
    return folder.resolve().name if below == "." else below


def _parsed(text: bytes, passed: Counter[str]) -> dict[str, Any] | None:
    """A configuration of a model; other files have the same name."""
    if len(text) > MOST_BYTES:
        passed[f"larger than {MOST_BYTES >> 20} MiB"] += 1
        return None
    try:
        config = json.loads(text)
    except (ValueError, RecursionError):
        passed["not JSON"] += 1
        return None
    if not isinstance(config, dict) or "model_type" not in config:
        passed["of no model"] += 1
        return None
    return config


def _of_hub(most: int | None, passed: Counter[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    endpoint = os.environ.get("HF_ENDPOINT", "https://huggingface.co").rstrip("/")
    query = urllib.parse.urlencode({"filter": "transformers", "sort": "downloads", "direction": -1, "limit": PAGE})
    page: str | None = f"{endpoint}/api/models?{query}"
    count = 0
    while page is not None:
        names, page = _page(page)
        for name in names:
            if most is not None and count >= most:
                return
            count += 1
            try:
                config, _ = _get(f"{endpoint}/{urllib.parse.quote(name)}/resolve/main/{FILE}")
            except urllib.error.HTTPError as error:
                # Gated, or without one.
                passed[f"answered with HTTP {error.code}"] += 1
                continue
            parsed = _parsed(config, passed)
            if parsed is not None:
                yield name, parsed


def _page(address: str) -> tuple[list[str], str | None]:
    """The names of one page of the hub's listing, and the address of the next page."""
    try:
        body, links = _get(address)
    except urllib.error.HTTPError as error:
        raise CaptureError("bad request", f"the hub answers its listing {address} with HTTP {error.code}: {error.reason}") from error
    try:
        listed = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise CaptureError("bad request", f"the hub's listing {address} is no JSON, or was cut off: {error}") from error
    names = [one.get("id") if isinstance(one, dict) else None for one in listed] if isinstance(listed, list) else [None]
    if not all(isinstance(name, str) for name in names):
        raise CaptureError("bad request", f'the hub\'s listing {address} is no list of models with an "id" each')
    following = re.search(r'<([^>]+)>;\s*rel="next"', links)
    return names, following[1] if following else None


def _get(address: str) -> tuple[bytes, str]:
    try:
        with urllib.request.urlopen(address, timeout=SECONDS) as answer:  # noqa: S310 - the hub's own address, or a mirror's
            return answer.read(MOST_BYTES + 1), answer.headers.get("Link", "")
    except urllib.error.HTTPError:
        raise
    except (OSError, http.client.HTTPException) as error:
        raise CaptureError("bad request", f"the hub cannot be reached: {error}; name a folder with a mirror of it") from error
