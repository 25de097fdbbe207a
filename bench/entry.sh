#!/usr/bin/env bash
# The reference's entry point for a sample. Link it into a sample folder and run it there:
#
#     ln -s PASSNET/bench/entry.sh SAMPLE/entry.sh && bash SAMPLE/entry.sh
#
# Evaluates the passes of SAMPLE/pass_dir on the sample's graphs, writes validation.log and aggregated_score.json,
# and prints what the reference prints. Further arguments go to `passnet bench`. From the environment:
#
#     PASSNET_OUTPUT   where the two files go; the reference's place otherwise
#     PASSNET          the program, if it is neither on the path nor built beside this script
set -euo pipefail

# The folder the link lies in, not the one it leads to.
sample=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
output=${PASSNET_OUTPUT:-/tmp/workspace_pass_bench_test}
built=$(dirname "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")")/target/release/passnet
passnet=${PASSNET:-$(command -v passnet || echo "$built")}

mkdir -p "$output"
# The score of an earlier evaluation must not be taken for this one's.
rm -f "$output/validation.log" "$output/aggregated_score.json"

run=$(mktemp -d)
trap 'rm -rf "$run"' EXIT

# 1 says that something under test failed, which the score tells.
status=0
"$passnet" bench "$sample" --warmup 25 --trials 100 --out "$run" "$@" >"$run/table" || status=$?
if [ "$status" -gt 1 ]; then
    exit "$status"
fi
"$passnet" report "$run" --reference-files "$output"
