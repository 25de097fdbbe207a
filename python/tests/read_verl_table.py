"""Reads a table of prompts as verl does: `python read_verl_table.py FILE`. Started by a test of passnet; needs datasets."""

from __future__ import annotations

import sys
import tempfile

import datasets


def main() -> None:
    with tempfile.TemporaryDirectory() as cache:
        # The call of verl's RLHFDataset.
        rows = datasets.load_dataset("parquet", data_files=sys.argv[1], cache_dir=cache)["train"]
        [row] = list(rows)
    assert [message["role"] for message in row["prompt"]] == ["system", "user"], row["prompt"]
    assert all(isinstance(message["content"], str) and message["content"] for message in row["prompt"])
    assert row["data_source"] == "passnet" and row["ability"] == "compiler_pass"
    assert row["reward_model"] == {"style": "rule", "ground_truth": "task"}, row["reward_model"]
    extra = row["extra_info"]
    assert (extra["index"], extra["task"], extra["split"]) == (0, "task", "train") and extra["tokens"] > 100, extra


if __name__ == "__main__":
    main()
