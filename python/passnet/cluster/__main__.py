"""`python -m passnet.cluster`: started by the `passnet` program, which speaks with it through its pipes."""

from __future__ import annotations

import os
import sys


def main() -> int:
    # What libraries print must not get between the messages.
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    try:
        from . import bridge
    except ImportError as error:
        from . import frames

        reason = f"this Python ({sys.executable}) cannot speak with a cluster: {error}"
        frames.write(out, {"is": "lost", "reason": reason})
        return 3
    return bridge.main(out)


if __name__ == "__main__":
    sys.exit(main())
