"""`python -m passnet.learn train JOB.json` and `python -m passnet.learn reply JOB.json`; see `job.py`."""

from __future__ import annotations

import os
import sys
import threading

from passnet.learn.job import JobError, read_reply_job, read_train_job


def main(arguments: list[str]) -> int:
    match arguments:
        case ["train", path]:
            from passnet.learn.train import train

            end_with_parent()
            train(read_train_job(path))
        case ["reply", path]:
            from passnet.learn.reply import serve

            serve(read_reply_job(path), sys.stdin, sys.stdout)
        case _:
            raise JobError("usage: python -m passnet.learn (train | reply) JOB.json")
    return 0


def end_with_parent() -> None:
    """Whoever started this holds its input open; two trainings of one adapter would spoil it."""

    def wait() -> None:
        sys.stdin.read()
        os._exit(3)

    threading.Thread(target=wait, daemon=True).start()


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except JobError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)
