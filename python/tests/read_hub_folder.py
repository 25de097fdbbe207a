"""Opens a folder that `passnet dataset export --format hub` wrote as people do: `python read_hub_folder.py FOLDER AGAIN`.

Prints the rows of each split of each configuration as JSON, and writes the folder once more as `datasets` itself would, to
AGAIN. Started by a test of passnet; needs datasets.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from pathlib import Path

os.environ["HF_HUB_OFFLINE"] = "1"

import datasets  # noqa: E402  (asks for the variable above when it is imported)


def main() -> None:
    folder, again = sys.argv[1], Path(sys.argv[2])
    rows = {}
    with tempfile.TemporaryDirectory() as cache:
        for config in datasets.get_dataset_config_names(folder):
            splits = datasets.load_dataset(folder, config, cache_dir=cache)
            rows[config] = {name: split.num_rows for name, split in splits.items()}
            (again / "data" / config).mkdir(parents=True)
            for name, split in splits.items():
                split.to_parquet(again / "data" / config / f"{name}-00000-of-00001.parquet")
                check(config, split[0])
        # Without a name it is the graphs that are meant.
        assert set(datasets.load_dataset(folder, cache_dir=cache)) == set(rows["graphs"])
    print(json.dumps(rows))


def check(config: str, row: dict[str, object]) -> None:
    if config == "graphs":
        assert "class GraphModule" in str(row["model_py"]) and isinstance(row["op_count"], int), row
        compile(str(row["model_py"]), "model.py", "exec")
    elif config == "tasks":
        graphs, uids = row["graphs"], row["uids"]
        assert isinstance(graphs, list) and isinstance(uids, list) and len(graphs) == len(uids) > 0, row


if __name__ == "__main__":
    main()
