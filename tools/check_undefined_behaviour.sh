#!/bin/sh
# Looks for undefined behaviour in the engine's tensor core.
#
#   tools/check_undefined_behaviour.sh [miri|sanitizer]
#
# Miri interprets the unit tests of everything that holds raw memory: buffers, layouts, vectors, threads, padded volumes,
# our own products. It knows neither vector instructions nor foreign kernels, so the engine's golden tests run natively,
# under AddressSanitizer and with debug assertions. Needs `rustup toolchain install nightly --component miri,rust-src`.
set -eu
cd "$(dirname "$0")/.."
what="${1:-all}"

if [ "$what" != sanitizer ]; then
    # Helper threads outlive the tests, and time is read from the system. rayon's queues (crossbeam) break the older of
    # Miri's two models of borrowing, Stacked Borrows; Tree Borrows is the one that is checked.
    export MIRIFLAGS="-Zmiri-disable-isolation -Zmiri-ignore-leaks -Zmiri-tree-borrows"
    cargo +nightly miri test -p passnet-kernel --no-default-features --lib exec::team
    cargo +nightly miri test -p passnet-engine --lib -- \
        native::tensor native::simd native::ops::conv native::ops::gemm native::ops::reduce
fi
if [ "$what" != miri ]; then
    RUSTFLAGS="-Zsanitizer=address -Cdebug-assertions -Coverflow-checks" ASAN_OPTIONS="detect_leaks=0" \
        cargo +nightly test -p passnet-engine --target x86_64-unknown-linux-gnu \
        --lib --test tensor --test ops --test graphs --test chains
fi
