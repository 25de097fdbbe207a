"""What the backend makes of a model: `python -m passnet.backend.explain FILE.py:factory`."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

import torch

from passnet.backend import passnet_backend, report
from passnet.backend.models import build, prepared


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="passnet explain-model", description=__doc__.splitlines()[0])
    parser.add_argument("model", help="FILE.py:factory, timm:NAME or hf:MODEL_TYPE[,setting=value…]")
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--dtype", default="bfloat16" if torch.cuda.is_available() else "float32")
    parser.add_argument("--options", default="{}", help="options of the backend, as JSON")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--html", metavar="PAGE", help="write a page with the model's graph")
    given = parser.parse_args(arguments)
    module, call = prepared(build(given.model), given.batch, torch.device(given.device), getattr(torch, given.dtype))
    with torch.inference_mode():
        call(torch.compile(module, backend=passnet_backend, options=json.loads(given.options)))
    found = report()
    if given.html:
        try:
            Path(given.html).write_text(found.as_html(f"{given.model}, batch {given.batch}"), encoding="utf-8")
        except OSError as error:
            print(f"{given.html}: {error.strerror}", file=sys.stderr)
            return 2
    print(json.dumps(found.as_dict()) if given.json else found)
    return 0


if __name__ == "__main__":
    sys.exit(main())
