"""Supervised fine-tuning with TRL on what `passnet agent export --to trl-prompt-completion` wrote.

    passnet agent run TASKS --model solver --with-mistakes --out runs/solver
    passnet agent export runs/solver --to trl-prompt-completion --success --out train.jsonl
    python recipes/trl_sft.py MODEL train.jsonl OUT [--dry-run]

Every line is a prompt and one reply worth learning; the loss is on the reply. Needs trl, peft and datasets.
"""

from __future__ import annotations

import argparse

from datasets import load_dataset
from peft import LoraConfig
from trl import SFTConfig, SFTTrainer

COLUMNS = ("prompt", "completion", "tools")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("data")
    parser.add_argument("out")
    parser.add_argument("--dry-run", action="store_true", help="two steps, on any device")
    options = parser.parse_args()
    data = load_dataset("json", data_files=options.data, split="train")
    data = data.remove_columns([name for name in data.column_names if name not in COLUMNS])
    config = SFTConfig(
        output_dir=options.out,
        max_length=8192,
        completion_only_loss=True,
        per_device_train_batch_size=1,
        gradient_accumulation_steps=1 if options.dry_run else 16,
        num_train_epochs=2,
        max_steps=2 if options.dry_run else -1,
        learning_rate=2e-4,
        lr_scheduler_type="cosine",
        warmup_steps=10,
        bf16=not options.dry_run,
        use_cpu=options.dry_run,
        logging_steps=1 if options.dry_run else 10,
        report_to=[],
    )
    adapters = LoraConfig(r=16, lora_alpha=32, target_modules="all-linear", task_type="CAUSAL_LM")
    trainer = SFTTrainer(model=options.model, args=config, train_dataset=data, peft_config=adapters)
    trainer.train()
    trainer.save_model(options.out)


if __name__ == "__main__":
    main()
