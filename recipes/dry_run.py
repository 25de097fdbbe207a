"""Starts a recipe on a CPU, as far as its trainer goes without a GPU: `python dry_run.py DIR TRAINER`.

DIR holds the exports, `TRAINER.jsonl`. The recipe's own file is read by the trainer's own code; a model of a few thousand random
weights, whose tokens are bytes, stands for the real one. The last line says how far it went; the exit code is 77 where the
trainer is not installed. `tools/full-check` starts it with each trainer's Python.
"""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Callable
from copy import deepcopy
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "python/tests"))

from byte_tokenizer import write_byte_model  # noqa: E402
from read_exports import TEMPLATE  # noqa: E402

ABSENT = 77
# A token is a byte here: a prompt that fits a recipe's limit with a real tokenizer has about four times as many.
LONGEST = 1 << 15


def settings(recipe: str) -> dict[str, Any]:
    import yaml

    found = yaml.safe_load((HERE / recipe).read_text(encoding="utf-8"))
    assert isinstance(found, dict)
    return found


def model_in(folder: Path) -> str:
    write_byte_model(folder / "model", TEMPLATE)
    return str(folder / "model")


def start_llama_factory(folder: Path) -> str:
    from llamafactory.train.tuner import run_exp

    # What the head of the recipe says about data/dataset_info.json.
    columns = {"messages": "conversations", "system": "system", "tools": "tools"}
    described = {"passnet": {"file_name": "llama-factory.jsonl", "formatting": "sharegpt", "columns": columns}}
    (folder / "dataset_info.json").write_text(json.dumps(described), encoding="utf-8")
    out = folder / "llama-factory"
    here = {
        "model_name_or_path": model_in(folder), "dataset_dir": str(folder), "output_dir": str(out), "cutoff_len": LONGEST,
        "bf16": False, "use_cpu": True, "max_steps": 1, "gradient_accumulation_steps": 1, "report_to": "none",
    }
    run_exp({**settings("llama_factory.yaml"), **here})
    assert (out / "adapter_model.safetensors").is_file(), "the step left no adapter"
    return f"one step with llamafactory {version('llamafactory')}"


def start_axolotl(folder: Path) -> str:
    import yaml
    from axolotl.cli.args import TrainerCliArgs
    from axolotl.cli.config import load_cfg
    from axolotl.common.datasets import load_datasets

    out = folder / "axolotl"
    recipe = settings("axolotl.yaml")
    recipe["datasets"][0]["path"] = str(folder / "axolotl.jsonl")
    # Packing needs attention kernels that only a GPU has.
    here = {
        "base_model": model_in(folder), "output_dir": str(out), "dataset_prepared_path": str(folder / "prepared"),
        "sequence_len": LONGEST, "sample_packing": False, "bf16": False, "use_cpu": True, "max_steps": 1,
        "gradient_accumulation_steps": 1, "dataset_num_proc": 1, "special_tokens": {"pad_token": "<|im_end|>"},
    }
    path = folder / "axolotl.yaml"
    path.write_text(yaml.safe_dump({**recipe, **here}), encoding="utf-8")
    config = load_cfg(str(path))
    data = load_datasets(cfg=config, cli_args=TrainerCliArgs())
    for row in data.train_dataset:
        learned = [label for label in row["labels"] if label != -100]
        assert 0 < len(learned) < len(row["labels"])
    return f"settings checked, data loaded and tokenised by axolotl {version('axolotl')}; no step"


def verl_overrides(names: dict[str, str]) -> list[str]:
    """What the recipe's command line holds after the name of the module, with the shell's variables put in."""
    text = (HERE / "verl_grpo.sh").read_text(encoding="utf-8")
    words = text.partition("verl.trainer.main_ppo")[2].replace("\\\n", " ")
    for name, value in names.items():
        words = words.replace(f"${name}", value)
    return shlex.split(words)


def start_verl(folder: Path) -> str:
    from hydra import compose, initialize_config_module
    from verl.trainer.ppo.reward import get_custom_reward_fn
    from verl.trainer.ppo.utils import need_critic, need_reference_policy
    from verl.utils import hf_tokenizer
    from verl.utils.config import validate_config
    from verl.utils.dataset.rl_dataset import RLHFDataset

    model = model_in(folder)
    names = {"model": model, "data": str(folder / "verl.jsonl"), "out": str(folder / "verl"), "here": str(HERE)}
    here = [f"data.max_prompt_length={LONGEST}", f"+data.cache_dir={folder / 'cache'}"]
    with initialize_config_module("verl.trainer.config", version_base=None):
        config = compose("ppo_trainer", overrides=[*verl_overrides(names), *here])
    checked = deepcopy(config)
    if find_spec("vllm") is None:
        # The last check, of the adapter's rank, asks vLLM; under another name it is left out.
        checked.actor_rollout_ref.rollout.name = "sglang"
    validate_config(checked, use_reference_policy=need_reference_policy(config), use_critic=need_critic(config))
    rollout, trainer = config.actor_rollout_ref.rollout, config.trainer
    assert rollout.tensor_model_parallel_size <= trainer.n_gpus_per_node * trainer.nnodes, "replies need more GPUs than there are"
    data = RLHFDataset(config.data.train_files, hf_tokenizer(model), config.data)
    assert len(data) > 0 and data[0]["raw_prompt"], "no prompt is left"
    assert get_custom_reward_fn(config) is not None, "the reward function is not found"
    return f"settings, prompts and reward function read by verl {version('verl')}; no step, which takes vLLM and a GPU"


# What each trainer is imported as, and what starts it.
STARTERS: dict[str, tuple[str, Callable[[Path], str]]] = {
    "llama-factory": ("llamafactory", start_llama_factory),
    "axolotl": ("axolotl", start_axolotl),
    "verl": ("verl", start_verl),
}


def main() -> int:
    if len(sys.argv) != 3 or sys.argv[2] not in STARTERS:
        print(f"dry_run.py DIR {'|'.join(STARTERS)}", file=sys.stderr)
        return 2
    module, start = STARTERS[sys.argv[2]]
    if find_spec(module) is None:
        print(f"{module} is not installed", flush=True)
        return ABSENT
    # One that is there and lacks something it needs has failed: that is not the same as being absent.
    print(start(Path(sys.argv[1])), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
