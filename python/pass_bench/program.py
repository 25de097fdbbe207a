"""Finds the program and becomes it."""

import os
import shutil
import sys


def become(command):
    """Runs `passnet reference COMMAND` with this process's arguments, in its place."""
    program = os.environ.get("PASSNET") or shutil.which("passnet")
    if program is None:
        print("passnet is not on the path; name it by the variable PASSNET", file=sys.stderr)
        raise SystemExit(3)
    os.execv(program, [program, "reference", command, *sys.argv[1:]])
