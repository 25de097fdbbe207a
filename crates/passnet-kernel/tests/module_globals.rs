//! Which module-level names a kernel may read: those that Triton lets it read.

use passnet_graph::syntax::Source;
use passnet_kernel::fixture::Fixture;

/// The refusal of a kernel that stores `value`, with these lines at the top of the file.
fn refusal(top: &str, value: &str) -> Option<String> {
    let text = format!(
        "# wrapper: run
# input: x float32 [16] normal
import math
import torch
import triton
import triton.language as tl
{top}

@triton.jit
def kernel(x_ptr, SIZE: tl.constexpr = 2 * WIDTH):
    i = tl.arange(0, 16)
    tl.store(x_ptr + i, {value})


def run(x):
    kernel[(1,)](x)
    return x
"
    );
    let text = if top.contains("WIDTH") { text } else { text.replace("2 * WIDTH", "4") };
    let fixture = Fixture::new(Source::new("pass.py", &*text)).unwrap_or_else(|e| panic!("{e}"));
    fixture.prepare().err().map(|e| e.to_string())
}

#[test]
fn plain_globals_are_refused_where_they_are_read() {
    for (top, value) in [
        ("SCALE = 0.5", "SCALE"),
        ("SCALE = 1 + 2", "SCALE * 2"),
        ("SCALE: tl.constexpr = 0.5", "SCALE"),
        ("SCALE: float = 0.5", "SCALE"),
        ("SIZES = (1, 2)\nSCALE = 3", "SIZES[0]"),
        ("SCALE = 0.5\nOTHER = SCALE", "OTHER"),
        ("from math import pi", "pi"),
        ("KIND = \"fast\"", "1.0 if KIND == \"fast\" else 2.0"),
    ] {
        let message = refusal(top, value).unwrap_or_else(|| panic!("{top}: was accepted"));
        let line = 11 + top.lines().count();
        assert!(message.contains(&format!("pass.py:{line}:")), "{top}: {message}");
        assert!(message.contains("cannot read the global"), "{top}: {message}");
        assert!(message.contains("tl.constexpr(...)"), "{top}: {message}");
    }
}

#[test]
fn what_has_no_value_of_its_own_or_is_wrapped_may_be_read() {
    for (top, value) in [
        ("SCALE = tl.constexpr(0.5)", "SCALE"),
        ("HALF = 0.5\nSCALE = tl.constexpr(HALF * 3)", "SCALE"),
        ("SCALE = tl.constexpr(3)\nTWICE = SCALE * 2", "TWICE"),
        ("SCALE = tl.constexpr(3)\nNEGATIVE = -SCALE", "NEGATIVE"),
        ("SCALE: tl.constexpr = tl.constexpr(3)", "SCALE"),
        ("WIDTH = 8", "SIZE"),
        ("KIND = tl.float16", "tl.full([16], 1.5, KIND).to(tl.float32)"),
        ("root = tl.sqrt", "root(tl.load(x_ptr + i))"),
        ("language = tl", "language.abs(tl.load(x_ptr + i))"),
        ("", "math.pi"),
        ("NAN = tl.PropagateNan.ALL", "tl.maximum(tl.load(x_ptr + i), 0.0, propagate_nan=NAN)"),
        ("@triton.jit\ndef twice(x):\n    return x * 2\n\nagain = twice\n", "again(3.0)"),
    ] {
        assert_eq!(refusal(top, value), None, "{top}");
    }
}
