#!/usr/bin/env bash
# The compatibility tier with real passes: some right, some that misbehave, each against the verdict it must get.
#
#     PASSNET_PYTHON=python3 PASSNET_RUNNER=target/release/libpassnet_runner.so \
#         tools/check_compat_tier.sh target/release/passnet cuda
#
# The second argument is the device, `cuda` if there is none. About a minute on a GPU. Exits with the number of surprises.
set -u
passnet=${1:?a release build of passnet}
device=${2:-cuda}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
task=$work/swiglu
cp -r bench/tasks/swiglu "$task"
head -n 1 bench/tasks/swiglu/graph_list.txt > "$task/graph_list.txt"

# A pass for the task `swiglu` whose kernels an object launches, which no plan can: NAME BODY_OF_THE_WRAPPER.
write_pass() {
    mkdir -p "$work/$1"
    printf '["mine"]' > "$work/$1/sorted_output_pass_rule_names.json"
    cat > "$work/$1/mine.py" << 'END'
import torch
import triton
import triton.language as tl


def pattern(gate_up):
    gate, up = gate_up.chunk(2, dim=-1)
    return up * torch.nn.functional.silu(gate, inplace=False)


def replacement_args(gate_up):
    return (gate_up,)


def swiglu(packed, out, width, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    column = tl.arange(0, BLOCK)
    inside = column < width
    gate = tl.load(packed + row * 2 * width + column, mask=inside, other=0.0).to(tl.float32)
    up = tl.load(packed + row * 2 * width + width + column, mask=inside, other=0.0).to(tl.float32)
    silu = (gate * tl.sigmoid(gate)).to(out.dtype.element_ty).to(tl.float32)
    tl.store(out + row * width + column, (up * silu).to(out.dtype.element_ty), mask=inside)


@triton.jit
def store_at(address):
    tl.store(address.to(tl.pointer_type(tl.float32)), 1.0)


class Launch:
    def __init__(self, kernel):
        self.kernel = kernel

    def __call__(self, gate_up):
        *lead, packed = gate_up.shape
        out = torch.empty((*lead, packed // 2), dtype=gate_up.dtype, device=gate_up.device)
        block = triton.next_power_of_2(packed // 2)
        self.kernel[(gate_up.numel() // packed,)](gate_up, out, packed // 2, BLOCK=block)
        return out


plain = Launch(triton.jit(swiglu))
configs = [triton.Config({}, num_warps=4), triton.Config({}, num_warps=8)]
tuned = Launch(triton.autotune(configs=configs, key=["width"])(triton.jit(swiglu)))


@torch.fx.wrap
def wrapper(gate_up):
END
    printf '%b\n\n\ndef replacement_func():\n    return wrapper\n' "$2" >> "$work/$1/mine.py"
}

surprises=0
# NAME VERDICT BODY
expect() {
    write_pass "$1" "$3"
    local found
    found=$(timeout 120 "$passnet" bench "$task" --passes "$work/$1" --engine torch --device "$device" --tier compat \
        --no-rules --quick --json 2> "$work/errors" | sed -n 's/.*"verdict":"\([a-z_]*\)".*/\1/p' | head -n 1)
    if [ "$found" = "$2" ]; then
        echo "$1: $found"
    else
        echo "$1: ${found:-nothing}, not $2"
        tail -n 5 "$work/errors"
        surprises=$((surprises + 1))
    fi
}

expect plain correct '    return plain(gate_up)'
expect zeros accuracy '    return torch.zeros_like(plain(gate_up))'
expect operator runtime_fail '    return getattr(torch, "mul")(plain(gate_up), 1)'
expect file runtime_fail '    open("/etc/hostname").read()\n    return plain(gate_up)'
expect network runtime_fail '    import socket\n    socket.socket().connect(("127.0.0.1", 1))\n    return plain(gate_up)'
if [ "$device" = cuda ]; then
    expect autotuned correct '    return tuned(gate_up)'
    expect fault runtime_fail '    out = plain(gate_up)\n    store_at[(1,)](out.data_ptr() + (1 << 44))\n    return out'
    expect memory runtime_fail '    keep = [torch.empty(1 << 34, dtype=torch.uint8, device=gate_up.device) for _ in range(9)]\n    return plain(gate_up)'
    # What the two above did to the GPU is theirs alone.
    expect after correct '    return plain(gate_up)'
fi
exit $surprises
