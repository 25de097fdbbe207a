"""GRPO with TRL: the reward of a reply is what the environment server says about it.

    passnet agent serve TASKS --engine torch --device cuda &
    passnet agent export runs/solver --to trl-prompt --out prompts.jsonl
    python recipes/trl_grpo.py MODEL prompts.jsonl OUT [--server http://127.0.0.1:8765] [--dry-run]

Make the run that is exported with `--calls text`, so that prompts say how to write calls and replies are plain texts. A
reply is one step of an episode; the reward comes in tiers (`docs/learning.md`). Needs trl, peft and datasets.
"""

from __future__ import annotations

import argparse
import json
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from datasets import load_dataset
from peft import LoraConfig
from trl import GRPOConfig, GRPOTrainer

AT_ONCE = 16


def ask(server: str, path: str, body: dict[str, Any]) -> dict[str, Any]:
    request = urllib.request.Request(f"{server}/v1/{path}", json.dumps(body).encode(), {"content-type": "application/json"})
    with urllib.request.urlopen(request, timeout=1200) as answer:
        return json.load(answer)


def reward_of(server: str, task: str, reply: str) -> float:
    episode = ask(server, "reset", {"task": task})["episode"]
    try:
        return float(ask(server, "step", {"episode": episode, "text": reply})["tiered_reward"])
    finally:
        ask(server, "close", {"episode": episode})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("data")
    parser.add_argument("out")
    parser.add_argument("--server", default="http://127.0.0.1:8765")
    parser.add_argument("--dry-run", action="store_true", help="one step of short replies, on any device")
    options = parser.parse_args()

    def judged(completions: list[Any], task: list[str], **_: Any) -> list[float]:
        texts = [completion[0]["content"] for completion in completions]
        with ThreadPoolExecutor(AT_ONCE) as pool:
            return list(pool.map(lambda pair: reward_of(options.server, *pair), zip(task, texts, strict=True)))

    data = load_dataset("json", data_files=options.data, split="train").select_columns(["prompt", "task"])
    config = GRPOConfig(
        output_dir=options.out,
        num_generations=2 if options.dry_run else 8,
        per_device_train_batch_size=2 if options.dry_run else 8,
        max_completion_length=8 if options.dry_run else 2048,
        max_steps=1 if options.dry_run else 200,
        learning_rate=5e-6,
        bf16=not options.dry_run,
        use_cpu=options.dry_run,
        logging_steps=1,
        report_to=[],
    )
    adapters = LoraConfig(r=16, lora_alpha=32, target_modules="all-linear", task_type="CAUSAL_LM")
    trainer = GRPOTrainer(model=options.model, reward_funcs=judged, args=config, train_dataset=data, peft_config=adapters)
    trainer.train()
    trainer.save_model(options.out)


if __name__ == "__main__":
    main()
