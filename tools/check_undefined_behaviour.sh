#!/bin/sh
# Looks for undefined behaviour where raw memory is handled.
#
#   tools/check_undefined_behaviour.sh [miri|sanitizer]
#
# Miri interprets the unit tests of
#   - the thread pool, vectors, elementary functions and scratch memory;
#   - the kernel executor's address space, strided copies and views, and the validation of plans;
#   - the engine's buffers, layouts, padded volumes and our own products.
# It knows neither vector instructions nor machine code nor foreign kernels. Those run natively under AddressSanitizer, with
# debug assertions and overflow checks:
#   - the kernel executor's tests, once with machine code and once without: goldens, wrong and hostile kernels, checks;
#   - the runner's tests: its C interface, damaged plans through it, and a CUDA driver made of paper;
#   - the engine's golden tests.
# AddressSanitizer does not look into machine code either: it sees what such code writes over freed or foreign memory only when
# something else trips over it. The fuzz targets `kernel` and `plan_json` put buffers between forbidden pages for that.
#
# Needs `rustup toolchain install nightly --component miri,rust-src`.
set -eu
cd "$(dirname "$0")/.."
what="${1:-all}"

sanitized() {
    RUSTFLAGS="-Zsanitizer=address -Cdebug-assertions -Coverflow-checks" ASAN_OPTIONS="detect_leaks=0" \
        cargo +nightly test --target x86_64-unknown-linux-gnu "$@"
}

if [ "$what" != sanitizer ]; then
    # Helper threads outlive the tests, and time is read from the system. rayon's queues (crossbeam) break the older of
    # Miri's two models of borrowing, Stacked Borrows; Tree Borrows is the one that is checked.
    export MIRIFLAGS="-Zmiri-disable-isolation -Zmiri-ignore-leaks -Zmiri-tree-borrows"
    cargo +nightly miri test -p passnet-cpu --lib
    cargo +nightly miri test -p passnet-kernel --no-default-features --lib -- \
        exec::memory exec::strided exec::views plan::validate
    cargo +nightly miri test -p passnet-engine --lib -- \
        native::tensor native::ops::conv native::ops::gemm native::ops::reduce
fi
if [ "$what" != miri ]; then
    sanitized -p passnet-kernel --lib --test goldens --test machine_code --test bad_input --test checks
    sanitized -p passnet-kernel --no-default-features --lib --test goldens --test bad_input --test checks
    sanitized -p passnet-runner --lib --test c_interface --test hostile_plans
    sanitized -p passnet-engine --lib --test tensor --test ops --test graphs --test chains
fi
