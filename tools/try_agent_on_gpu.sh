#!/usr/bin/env bash
# The whole way of an agent on a GPU, without a network and without a model: recorded replies (tools/scripted_model.py),
# scores and rewards from the engine asked for.
#
#     PASSNET_PYTHON=python3 PASSNET_RUNNER=target/release/libpassnet_runner.so \
#         tools/try_agent_on_gpu.sh target/release/passnet cuda swiglu geglu_tanh
#
# PASSNET_PYTHON needs PyTorch and Triton. The second argument is the device (`cpu` tries the script itself), the rest are
# bundled tasks. DEVICES=0,1 uses several GPUs. About a minute for each task. Exits with the number of surprises.
set -u
passnet=${1:?a release build of passnet}
device=${2:-cuda}
shift $(($# < 2 ? $# : 2))
tasks=("${@:-swiglu}")
python=${PASSNET_PYTHON:-python3}
work=$(mktemp -d)
surprises=0
started=()
stop() {
    for process in "${started[@]:-}"; do [ -n "$process" ] && kill "$process" 2> /dev/null; done
    rm -rf "$work"
}
trap stop EXIT

engine=(--engine torch --device "$device" --python "$python" --quick --seconds 0.2)
[ -n "${DEVICES:-}" ] && engine+=(--devices "$DEVICES")

expect() { # NAME: the rest must succeed
    local name=$1
    shift
    if "$@"; then echo "ok        $name"; else echo "SURPRISE  $name"; surprises=$((surprises + 1)); fi
}

# Waits for the first line of a file, which a server writes when it listens.
first_line() {
    for _ in $(seq 600); do
        [ -s "$1" ] && head -n 1 "$1" && return 0
        sleep 0.5
    done
    return 1
}

"$python" tools/scripted_model.py --port 0 > "$work/model" 2> "$work/model.errors" &
started+=($!)
url=$(first_line "$work/model") || { cat "$work/model.errors"; exit 1; }

paths=()
for task in "${tasks[@]}"; do paths+=("bench/tasks/$task"); done
"$passnet" agent run "${paths[@]}" --model scripted --base-url "$url" --out "$work/run" "${engine[@]}"
expect "every attempt solves its task" test $? -eq 0
expect "resume from another directory finds nothing to do" \
    bash -c 'cd / && "$0" agent resume "$1" > /dev/null' "$(realpath "$passnet")" "$work/run"
"$passnet" agent resume "$work/run" --engine native --device cpu > /dev/null 2> "$work/refused"
expect "another engine is refused in words" grep -q "begun with another engine" "$work/refused"
"$passnet" agent export "$work/run" --to sft --out "$work/sft.jsonl" > /dev/null

"$passnet" --json agent serve "${paths[@]}" --listen 127.0.0.1:0 "${engine[@]}" > "$work/server" 2> "$work/server.errors" &
started+=($!)
address=$(first_line "$work/server" | "$python" -c 'import json, sys; print(json.load(sys.stdin)["address"])') ||
    { cat "$work/server.errors"; exit 1; }
for task in "${tasks[@]}"; do
    "$python" python/examples/environment_client.py "http://$address" --task "$task" --passes bench/passes |
        tee "$work/client"
    expect "the server's reward for $task" grep -q "correct: True" "$work/client"
done

"$python" - "$work" "$device" << 'END'
import json, pathlib, sys, urllib.request

work, device = pathlib.Path(sys.argv[1]), sys.argv[2]
seen = []
for path in sorted(work.glob("run/attempts/*/*/trajectory.jsonl")):
    events = [json.loads(line) for line in path.read_text().splitlines()]
    start = events[0]
    identity = start["identity"]
    seen.append(("trajectory", identity))
    prompt = next(e["message"]["content"] for e in events if e["event"] == "message" and e["message"]["role"] == "user")
    target = prompt[prompt.index("Evaluation runs on") :].split("\n\n")[0]
    print(f"\n{start['task']}: the model is told\n{target}\n")
    for event in events:
        found = event.get("assessment") or {}
        if event["event"] == "result" and found.get("question") == "evaluate":
            for graph in found["graphs"]:
                print(f"graph {graph['graph']}: {graph['verdict']}, {graph.get('speedup', 0):.2f} times eager")
            print(f"AS {found['score']:.4f}")
for line in (work / "sft.jsonl").read_text().splitlines():
    seen.append(("export", json.loads(line)["engine"]))
seen.append(("server", json.loads((work / "server").read_text().splitlines()[0])["engine"]))
wrong = [name for name, identity in seen if identity["engine"] != "torch" or identity["device"]["kind"] != device]
print(f"engine: {seen[0][1]['device']}, PyTorch {seen[0][1].get('torch')}, Triton {seen[0][1].get('triton')}")
sys.exit(f"recorded another engine: {wrong}" if wrong else 0)
END
expect "trajectory, export and server record the engine" test $? -eq 0
echo "$surprises surprises"
exit "$surprises"
