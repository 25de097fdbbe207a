#!/bin/sh
# GRPO with verl on what `passnet agent export --to verl --out prompts.jsonl` wrote (of a run with `--calls text`).
#
#   passnet agent serve TASKS --engine torch --device cuda &
#   recipes/verl_grpo.sh MODEL prompts.jsonl OUT
#
# The reward of a reply is what the environment server says: recipes/verl_reward.py.
set -eu
model=$1 data=$2 out=$3
here=$(dirname "$0")
exec python3 -m verl.trainer.main_ppo \
    algorithm.adv_estimator=grpo \
    data.train_files="$data" \
    data.val_files="$data" \
    data.train_batch_size=64 \
    data.max_prompt_length=6144 \
    data.max_response_length=2048 \
    data.truncation=error \
    data.filter_overlong_prompts=True \
    actor_rollout_ref.model.path="$model" \
    actor_rollout_ref.model.lora_rank=16 \
    actor_rollout_ref.model.lora_alpha=32 \
    actor_rollout_ref.actor.optim.lr=5e-6 \
    actor_rollout_ref.actor.ppo_mini_batch_size=32 \
    actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=2 \
    actor_rollout_ref.rollout.name=vllm \
    actor_rollout_ref.rollout.tensor_model_parallel_size=1 \
    actor_rollout_ref.rollout.n=8 \
    actor_rollout_ref.rollout.log_prob_micro_batch_size_per_gpu=2 \
    actor_rollout_ref.ref.log_prob_micro_batch_size_per_gpu=2 \
    reward.custom_reward_function.path="$here/verl_reward.py" \
    reward.custom_reward_function.name=compute_score \
    trainer.n_gpus_per_node=1 \
    trainer.nnodes=1 \
    trainer.total_epochs=3 \
    trainer.default_local_dir="$out" \
    trainer.logger='["console"]'
