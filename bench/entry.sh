#!/usr/bin/env bash
# The reference's entry point for a sample. Put it in the place of a checkout's own, or link it into a sample, and run it:
#
#     cp PASSNET/bench/entry.sh CHECKOUT/entry_scripts/entry.sh && bash CHECKOUT/samples/.../entry.sh
#     ln -s PASSNET/bench/entry.sh SAMPLE/entry.sh && bash SAMPLE/entry.sh
#
# Evaluates the passes of SAMPLE/pass_dir on the sample's graphs, writes validation.log and aggregated_score.json,
# and prints what the reference prints. Further arguments go to `passnet reference test-compiler`. From the environment:
#
#     PASSNET_OUTPUT        where the two files go; the reference's places otherwise, of which it has had two
#     PASSNET               the program, if it is neither on the path nor built beside this script
#     PASSNET_REQUIRE_GPU   1: fail where no GPU can be used, instead of measuring on the CPU
set -uo pipefail

# The folder the link lies in, not the one it leads to.
sample=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd) || exit 2
built=$(dirname "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")")/target/release/passnet
passnet=${PASSNET:-$(command -v passnet || echo "$built")}

if [ -n "${PASSNET_OUTPUT:-}" ]; then
    outputs=("$PASSNET_OUTPUT")
else
    # The harness writes to the first, and its own evaluator reads the second.
    outputs=(/tmp/workspace_pass_bench_test /tmp/workspace_graph_net_bench_test)
fi
output=${outputs[0]}
# The score of an earlier evaluation must not be taken for this one's.
for folder in "${outputs[@]}"; do
    mkdir -p "$folder" && rm -f "$folder/validation.log" "$folder/aggregated_score.json" || exit 2
done

matched=$(mktemp) || exit 2
trap 'rm -f "$matched"' EXIT

quoted() {
    local text=${1//\\/\\\\}
    printf '"%s"' "${text//\"/\\\"}"
}
config=$(printf '{"pass_match_result_file_path": %s, "input_pass_rule_dir": %s, "output_pass_rule_dir": %s}' \
    "$(quoted "$matched")" "$(quoted "$sample/const_pass_dir")" "$(quoted "$sample/pass_dir")" | base64 | tr -d '\n')

"$passnet" reference test-compiler --model-path-prefix "$sample" --allow-list "$sample/graph_list.txt" \
    --compiler pass_mgr --warmup 25 --trials 100 --config "$config" "$@" 2>&1 | tee "$output/validation.log"
status=${PIPESTATUS[0]}
if [ "$status" -ne 0 ]; then
    exit "$status"
fi

result=$(cat "$matched")
echo "Has Any pass matched? [$result]"
if [ "$result" = False ]; then
    echo "Pass testing early exits on pass mismatch."
fi
"$passnet" reference aggregate --benchmark-path "$output/validation.log" --sample-id 1 --disable-aggregation-mode \
    --output-json-file-path "$output/aggregated_score.json" || exit
for folder in "${outputs[@]:1}"; do
    cp "$output/validation.log" "$output/aggregated_score.json" "$folder/" || exit 2
done
