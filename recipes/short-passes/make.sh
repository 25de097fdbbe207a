#!/usr/bin/env bash
# A small model that learns to write passes of one operation, from a corpus of whole models to the report:
#
#     recipes/short-passes/make.sh CORPUS MODEL OUT
#
# CORPUS is a folder or archive of whole models, MODEL a Hugging Face folder or a GGUF file, OUT a folder. Conversations are made on
# the CPU (about half an hour on two cores); training and judging need a GPU. Every step goes on where it was stopped.
# PASSNET_PYTHON names a Python with PyTorch and transformers.
set -euo pipefail
corpus=$(realpath "$1") model=$(realpath "$2") out=$3
here=$(realpath "$(dirname "$0")") top=$(realpath "$(dirname "$0")/../..")
mkdir -p "$out" && cd "$out"

# Tasks: pieces of the corpus that share no structure with the benchmark set.
exam=$top/bench/set/evaluation.pnds
cut_pieces() {
    passnet dataset build --from "$corpus" --store "$1.pnds" --kind "$1" --no-shapes --evaluation "$2"
    passnet dataset split "$1.pnds" --evaluation "$2" --withhold "$exam"
    passnet dataset export "$1.pnds" --out "$1" --only-tasks
}
cut_pieces typical 100
cut_pieces fusible 200
awk 'NR % 4 == 0' typical/sample_lists/typical_train.txt > typical/sample_lists/some.txt
awk 'NR % 4 == 0' fusible/sample_lists/fusible_train.txt > fusible/sample_lists/some.txt
passnet dataset export "$exam" --out exam
draw() { test -d "$2" || python3 "$top/tools/draw_tasks.py" $1 "$2" --text "${DRAW:-2026-11-18 16:35}" --tasks "$3" --smallest; }
draw "exam/sample_lists/fusible_eval.txt exam/sample_lists/typical_eval.txt" held-out 160
draw typical/sample_lists/typical_eval.txt alike 60
draw typical/sample_lists/typical_train.txt train 20

# Conversations of the solver: passes of one operation, short replies; a quarter of the tasks again with mistakes.
tell() {
    passnet agent run --list "$1" --out "$2" --model solver --solver-ops 1 --calls text --prompts "$here/prompts" \
        --most-graphs 1 --most-mib 16 --quick --warmup 1 --trials 3 --seconds 0.01 --max-output 420 "${@:3}"
    passnet agent export "$2" --to openai --success --out "$2.jsonl"
}
tell typical/sample_lists/typical_train.txt told --max-steps 2
tell typical/sample_lists/some.txt repaired --max-steps 4 --with-mistakes
tell fusible/sample_lists/some.txt told-fusible --max-steps 2
python3 "$here/select.py" sft.jsonl told.jsonl repaired.jsonl told-fusible.jsonl

passnet learn --model "$model" --tasks train --evaluate held-out --also alike --data sft.jsonl --prompts "$here/prompts" \
    --engine torch --device cuda --rounds 0 --max-steps 2 --max-output 1024 --length 16384 --batch 160 --epochs "${EPOCHS:-2}" \
    --rank 16 --blocks 2 --checkpoint-steps 20 --learning-rate 3e-4 --warmup 3 --trials 20 --seconds 0.05 --quick \
    --best-of 3 --out learned
