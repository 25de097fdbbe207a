//! Excerpts of passes, read back as text.

use super::excerpt;
use crate::modules::ModuleSet;
use passnet_graph::Diagnostic;
use passnet_graph::syntax::Source;

fn cut(files: &[(&str, &str)], kernel: &str) -> Result<super::Excerpt, Diagnostic> {
    let sources = files.iter().map(|(name, text)| {
        (name.to_string(), Source::new(format!("{name}.py"), text.to_string()))
    });
    excerpt(&ModuleSet::new(sources.collect()).unwrap(), 0, kernel, &[])
}

fn text(source: &str, kernel: &str) -> String {
    let mut excerpt = cut(&[("pass", source)], kernel).unwrap();
    assert_eq!((excerpt.main, excerpt.files.len()), (0, 1));
    excerpt.files.remove(0).text
}

const PASS: &str = r#"import os
import torch
import triton
import triton.language as tl

os.system("echo gotcha")
SCALE = tl.constexpr(1.0 / 2)
WIDTH = 64
DTYPE = tl.float32
LOW = tl.constexpr(float("-inf"))
UNUSED = os.environ


def pattern(x):
    return torch.relu(x)


@triton.jit
def helper(x, eps: float = 1e-5 * 2, kind: "tl.constexpr" = None) -> tl.tensor:
    WIDTH = x + eps
    return WIDTH.to(DTYPE)


@triton.autotune(configs=[triton.Config({"BLOCK": 64})], key=[os.getpid()])
@triton.jit
def kernel(
    x_ptr,
    n: (int),  # a comment
    BLOCK: tl.constexpr = print("hello") or 3 if False else 64,
):
    # Keeps its lines.
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=LOW)
    tl.store(x_ptr + i, helper(x) * SCALE, mask=i < n)


@triton.jit
def other(x_ptr):
    tl.store(x_ptr, WIDTH)
"#;

#[test]
fn a_kernel_brings_what_it_reaches_and_nothing_that_runs() {
    let text = text(PASS, "kernel");
    insta::assert_snapshot!(text);
}

#[test]
fn functions_keep_their_lines() {
    let text = text(PASS, "kernel");
    let line = |text: &str, needle: &str| text.lines().position(|line| line.contains(needle));
    for needle in
        ["def helper", "return WIDTH.to", "def kernel", "# Keeps its lines.", "helper(x) * SCALE"]
    {
        assert_eq!(line(&text, needle), line(PASS, needle), "{needle}");
    }
}

#[test]
fn other_files_are_imported_under_names_of_our_own() {
    let main = "\
import triton
import triton.language as tl
import os as helpers
from helpers import act as activation, LIMIT
import more

@triton.jit
def kernel(x_ptr):
    tl.store(x_ptr, activation(tl.load(x_ptr)) + LIMIT + more.twice(1))
";
    let helpers = "\
import triton
from triton.language.extra import libdevice
import triton.language as tl

LIMIT = tl.constexpr(7)

@triton.jit
def act(x):
    return libdevice.tanh(x)
";
    let more = "\
import triton

@triton.jit
def twice(x):
    return x + x
";
    let excerpt = cut(&[("pass", main), ("helpers", helpers), ("more", more)], "kernel").unwrap();
    let shown: String = excerpt
        .files
        .iter()
        .map(|file| format!("== {} from {}\n{}", file.module, file.path, file.text))
        .collect();
    insta::assert_snapshot!(shown);
}

#[test]
fn indented_functions_are_moved_to_the_left() {
    let source = "\
import triton
import triton.language as tl
if True:
    @triton.jit
    def kernel(x_ptr):
        tl.store(x_ptr, 1)
";
    let text = text(source, "kernel");
    assert!(text.ends_with("jit\ndef kernel(x_ptr):\n    tl.store(x_ptr, 1)\n"), "{text}");
}

#[test]
fn what_a_kernel_must_not_reach_is_refused() {
    let head = "import os\nimport triton\nimport triton.language as tl\n";
    for (rest, reason) in [
        ("@triton.jit\ndef kernel(p):\n    tl.store(p, os.getpid())\n", "cannot use `os`"),
        ("X = os.getpid()\n@triton.jit\ndef kernel(p):\n    tl.store(p, X)\n", "`os"),
        (
            "def f(x):\n    return x\n@triton.jit\ndef kernel(p):\n    tl.store(p, f(1))\n",
            "not a `@triton.jit`",
        ),
        ("@triton.jit\ndef kernel(p, n=os.getpid()):\n    tl.store(p, n)\n", "`os"),
        ("@triton.jit\ndef kernel(p, n=tl.exp):\n    tl.store(p, 1)\n", "not a constant"),
        (
            "from os import path\n@triton.jit\ndef kernel(p):\n    tl.store(p, path)\n",
            "cannot use `os.path`",
        ),
        ("A = B\nB = A\n@triton.jit\ndef kernel(p):\n    tl.store(p, A)\n", ""),
        ("x = 1\n", "no function"),
    ] {
        let refused = cut(&[("pass", &format!("{head}{rest}"))], "kernel").unwrap_err();
        assert!(refused.message.contains(reason), "{}", refused.message);
    }
}
