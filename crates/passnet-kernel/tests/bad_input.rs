//! Wrong and hostile pass files: a located error, never a panic, never unbounded work.

use passnet_graph::syntax::Source;
use passnet_graph::{DType, Device};
use passnet_kernel::ModuleSet;
use passnet_kernel::exec::{FaultKind, PreparedPlan, RunOptions};
use passnet_kernel::fixture::Fixture;
use passnet_kernel::plan::{HostArg, LaunchPlan, PlanLimits, TensorSpec, plan};
use proptest::prelude::*;
use std::path::Path;

const IMPORTS: &str = "import torch\nimport triton\nimport triton.language as tl\n\n";

fn modules(text: &str) -> Result<ModuleSet, String> {
    ModuleSet::new(vec![("pass".into(), Source::new("pass.py", text))]).map_err(|e| e.to_string())
}

fn planned(text: &str) -> Result<(ModuleSet, LaunchPlan), String> {
    let modules = modules(text)?;
    let x = HostArg::Tensor(TensorSpec::contiguous(&[64], DType::Float32, Device::CPU));
    let plan = plan(&modules, "run", &[x], PlanLimits::default()).map_err(|e| e.to_string())?;
    Ok((modules, plan))
}

/// Text of the error of a kernel body with `x` loaded and `i` the lanes.
fn kernel_error(body: &str) -> String {
    let body: String = body.lines().map(|l| format!("    {l}\n")).collect();
    let text = format!(
        "{IMPORTS}@triton.jit\ndef k(p, n, B: tl.constexpr):\n    i = tl.arange(0, B)\n    x = tl.load(p + i)\n{body}\n\
         def run(x):\n    k[(1,)](x, x.numel(), B=64)\n    return x\n"
    );
    match planned(&text).and_then(|(m, p)| PreparedPlan::new(&m, p).map_err(|e| e.to_string())) {
        Ok(_) => panic!("accepted:\n{text}"),
        Err(e) => e,
    }
}

fn host_error(body: &str) -> String {
    let body: String = body.lines().map(|l| format!("    {l}\n")).collect();
    let text = format!(
        "{IMPORTS}@triton.jit\ndef k(p):\n    tl.store(p, 0.0)\n\ndef run(x):\n{body}    return x\n"
    );
    match planned(&text) {
        Ok(_) => panic!("accepted:\n{text}"),
        Err(e) => e,
    }
}

#[test]
fn kernel_mistakes_are_located_and_explained() {
    for (body, message) in [
        ("y = tl.arange(0, 48)", "power of two"),
        ("y = tl.zeros((3,), tl.float32)", "power of two"),
        ("y = undefined + 1", "`undefined` is not defined"),
        ("def f(a):\n    return a", "a kernel cannot define a function"),
        ("y = {1: 2}", "kernels have no dicts"),
        ("y = lambda a: a", "write a `@triton.jit` function"),
        ("y = [a for a in x]", "cannot go through a run-time value"),
        ("y = x.to(tl.float16, fp_downcast_rounding='up')", "Triton has \"rtne\" and \"rtz\""),
        ("y = 0.5.to(tl.float16)", "a number of Python's has no attribute `to`"),
        ("y = 18446744073709551616", "between -2**63 and 2**64 - 1"),
        (
            "y = tl.inline_asm_elementwise('bar.sync 0;', '=r', [x], tl.int32, False, 1)",
            "runs on a GPU only",
        ),
        ("y = x.dtype.colour", "ask for `primitive_bitwidth`"),
        ("y = x & 1", "takes integers"),
        ("y = x // 2", "takes integers"),
        ("y = tl.exp(i)", "takes fp32 or fp64"),
        ("y = p * 2", "does not take pointers"),
        ("tl.store(i, x)", "expected a pointer"),
        ("y = x + tl.arange(0, 32)", "do not broadcast"),
        ("y = x[0]", "indexed with `:` and `None`"),
        ("y = tl.sum(x, axis=3)", "axis 3 is out of range"),
        ("y = tl.load(p + i, other=0.0)", "`other` needs a `mask`"),
        ("y = tl.dot(x, x)", "2-d or 3-d"),
        ("if x > 0:\n    y = 1", "scalar condition"),
        ("for j in range(3):\n    break", "no `break`"),
        ("while True:\n    x += 1", "never ends"),
        ("for j in tl.static_range(1000000):\n    x += 1", "after unrolling"),
        ("y = 0\nfor j in range(3):\n    y = x", "enters the loop as i32"),
        ("if n > 3:\n    y = 1\nelse:\n    y = x", "in one branch"),
        ("y = tl.load(p + i, mask=i < n, wrong=1)", "no argument `wrong`"),
        ("y = torch.relu(x)", "cannot be called inside a kernel"),
        ("y = open('/etc/passwd')", "`open` is not defined"),
        ("import os", "a kernel cannot import"),
        ("y = x.to(tl.int16, bitcast=True)", "widths differ"),
        ("tl.static_assert(B == 3, 'no')", "static assertion failed: no"),
    ] {
        let error = kernel_error(body);
        assert!(error.contains(message), "{body}\ngave: {error}");
        assert!(error.starts_with("pass.py:"), "{error}");
        let line: usize = error.split(':').nth(1).unwrap().parse().unwrap();
        assert!(line >= 5, "{error}");
    }
}

#[test]
fn recursion_ends() {
    let text = format!(
        "{IMPORTS}@triton.jit\ndef f(x):\n    return f(x) + 1\n\n@triton.jit\ndef k(p):\n    tl.store(p, f(1.0))\n\n\
         def run(x):\n    k[(1,)](x)\n    return x\n"
    );
    let (m, p) = planned(&text).unwrap();
    assert!(PreparedPlan::new(&m, p).unwrap_err().to_string().contains("cannot be recursive"));
}

#[test]
fn wrappers_outside_the_subset_are_refused() {
    for (body, message) in [
        ("y = x + 1", "cannot compute with tensors"),
        ("y = torch.relu(x)", "`torch.relu` cannot be called"),
        ("if x.sum() > 0:\n    pass", "cannot be called on a tensor"),
        ("if x:\n    pass", "cannot branch on tensor data"),
        ("y = float(x)", "cannot read tensor data"),
        ("y = x.item()", "reads tensor data"),
        ("try:\n    pass\nexcept Exception:\n    pass", "not allowed in a wrapper"),
        ("import os", "cannot be imported"),
        ("y = open('f')", "`open` is not defined"),
        ("y = getattr(x, 'sum')", "`getattr` is not defined"),
        ("y = x.__class__", "cannot be called"),
        ("while True:\n    pass", "steps"),
        ("t = (1,)\nwhile True:\n    t = (t, t)", "nested too deep or too large"),
        ("l = [1]\nwhile True:\n    l = l + l", ""),
        ("y = [0] * 10**12", "too long"),
        ("y = 10 ** 100", "64 bits"),
        ("y = 1 // 0", "division by zero"),
        ("y = torch.empty((-1,))", "negative size"),
        ("y = torch.empty((1 << 40, 1 << 20))", ""),
        ("k[(1 << 40,)](x)", "a GPU allows"),
        ("k[(-1,)](x)", "a GPU allows"),
        ("k[(1, 2, 3, 4)](x)", "one to three dimensions"),
        ("k(x)", "without a grid"),
        ("k[(1,)](x, 2)", "takes 1 arguments"),
        ("k[(1,)]()", "needs the argument `p`"),
        ("k[(1,)](\"x\")", "cannot be str"),
        ("def f():\n    return f()\nf()", "levels deep"),
        ("f = lambda: f()\nf()", "levels deep"),
        ("raise ValueError('no')", "the wrapper raises: no"),
        ("assert x.shape[0] == 3, 'size'", "assertion failed: size"),
        ("a, b = x.shape", "1 values for 2 names"),
    ] {
        let body = if body == "y = x.__class__" { "y = x.__class__()" } else { body };
        let error = host_error(body);
        assert!(error.contains(message), "{body}\ngave: {error}");
        assert!(error.starts_with("pass.py:"), "{error}");
    }
}

#[test]
fn endless_loops_stop() {
    let text = format!(
        "{IMPORTS}@triton.jit\ndef k(p):\n    n = 0\n    while n >= 0:\n        n = n & 7\n    tl.store(p, n)\n\n\
         def run(x):\n    k[(1,)](x)\n    return x\n"
    );
    let (m, p) = planned(&text).unwrap();
    let prepared = PreparedPlan::new(&m, p).unwrap();
    let mut x = vec![0u8; 256];
    let limited = RunOptions { threads: 1, iterations: 10_000, ..RunOptions::default() };
    let error = prepared.run(vec![&mut x], limited).unwrap_err();
    assert!(error.to_string().contains("without end"), "{error}");
}

/// Addresses wrap around at 2^64: the first and the last lane may lie in the buffer while those between do not.
#[test]
fn strides_that_wrap_around_end_in_a_fault() {
    let rows = "tl.arange(0, 4).to(tl.int64)[:, None]";
    let bits: Vec<String> = (0..4)
        .map(|bit| {
            let mut place = ["None"; 5];
            place[bit] = ":";
            format!("tl.arange(0, 2).to(tl.int64)[{}] * (1 << 60)", place.join(", "))
        })
        .collect();
    let columns = "tl.arange(0, 16)[None, None, None, None, :]";
    for (row, column, mask) in [
        // Rows 0 and 2 are the first row of the buffer, row 1 is nowhere.
        (format!("{rows} * (1 << 61)"), "tl.arange(0, 16)[None, :]", format!("{rows} < 3")),
        (format!("{rows} * (1 << 61)"), "tl.arange(0, 16)[None, :] * 4", format!("{rows} < 3")),
        (format!("{rows} * (1 << 61)"), "tl.arange(0, 8)[None, :]", format!("{rows} < 3")),
        // Four steps of a quarter of all addresses: together they add up to nothing.
        (bits.join(" + "), columns, format!("{columns} < 16")),
    ] {
        for access in [
            "tl.store(p + q, tl.load(p + place, mask=on))",
            "tl.store(p + place, on * 1.0, mask=on)",
        ] {
            let text = format!(
                "{IMPORTS}@triton.jit\ndef k(p):\n    column = {column}\n    place = {row} + column\n    \
                 q = column + place * 0\n    on = ({mask}) & (column < 64)\n    {access}\n\n\
                 def run(x):\n    k[(1,)](x)\n    return x\n"
            );
            let (modules, plan) = planned(&text).unwrap_or_else(|e| panic!("{text}: {e}"));
            let prepared =
                PreparedPlan::new(&modules, plan).unwrap_or_else(|e| panic!("{text}: {e}"));
            for interpret in [false, true] {
                let mut buffer = [0; 256];
                let options = RunOptions { interpret, ..RunOptions::default() };
                let error = match prepared.run(vec![&mut buffer], options) {
                    Ok(()) => panic!("accepted:\n{text}"),
                    Err(error) => error,
                };
                let is_outside = matches!(error.fault.kind, FaultKind::OutOfBounds { .. });
                assert!(is_outside, "{error}:\n{text}");
            }
        }
    }
}

/// A kernel text to damage, and what to do to it.
fn damaged() -> impl Strategy<Value = String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/kernels");
    let names =
        ["add", "softmax_rows", "matmul_bias_gelu", "attention", "route_strings", "welford_reduce"];
    let texts: Vec<String> = names
        .iter()
        .map(|n| std::fs::read_to_string(folder.join(format!("{n}.py"))).unwrap())
        .collect();
    let words = prop::sample::select(vec![
        "0",
        "-1",
        "64",
        "3",
        "1 << 40",
        "x",
        "tl.sum",
        "None",
        "\"s\"",
        "1.5",
        "(",
        ")",
        "[",
        ":",
        "\n",
        "tl.float16",
    ]);
    (prop::sample::select(texts), any::<prop::sample::Index>(), 0usize..12, words).prop_map(
        |(text, at, cut, word)| {
            // Keep the header: it only describes the inputs.
            let start = text.find("import torch").unwrap_or(0);
            let body: Vec<char> = text[start..].chars().collect();
            let at = at.index(body.len());
            let end = (at + cut).min(body.len());
            let head: String = body[..at].iter().collect();
            let tail: String = body[end..].iter().collect();
            format!("{}{head}{word}{tail}", &text[..start])
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn damaged_files_never_panic(text in damaged()) {
        let Ok(fixture) = Fixture::new(Source::new("damaged.py", text)) else { return Ok(()) };
        let Ok(prepared) = fixture.prepare() else { return Ok(()) };
        if fixture.plan.buffers.iter().map(|b| b.bytes()).sum::<u64>() > 64 << 20 {
            return Ok(());
        }
        let programs: u64 = prepared.launches().map(|(l, _)| l.programs()).sum();
        if programs < 10_000 {
            let _ = fixture.run(&prepared, RunOptions { threads: 1, iterations: 100_000, ..RunOptions::default() });
        }
    }

    #[test]
    fn damaged_ir_never_panics(at in any::<prop::sample::Index>(), cut in 0usize..8, word in "[a-z0-9%<>:,{}@ ]{0,6}") {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/kernels/attention.py");
        let fixture = Fixture::new(Source::read(&path).unwrap()).unwrap();
        let prepared = fixture.prepare().unwrap();
        let text: Vec<char> = prepared.functions().next().unwrap().to_string().chars().collect();
        let at = at.index(text.len());
        let end = (at + cut).min(text.len());
        let damaged: String = text[..at].iter().copied().chain(word.chars()).chain(text[end..].iter().copied()).collect();
        if let Ok(function) = passnet_kernel::ir::parse::parse("damaged.ir", &damaged) {
            let _ = passnet_kernel::ir::verify::verify(&function);
        }
    }
}

/// Buffers lie far apart in one space of addresses: a pointer that goes the whole distance faults as any other does.
#[test]
fn no_pointer_reaches_the_buffer_of_another() {
    // 2^38 elements of four bytes are the distance between two buffers.
    for (store, verb) in [
        ("tl.store(out + FAR, 1.0)", "writes"),
        ("tl.store(out, tl.load(out + FAR))", "reads"),
        ("tl.atomic_add(out + FAR, 1.0)", "writes"),
        ("tl.store(out + FAR + tl.arange(0, 8), 1.0)", "writes"),
        ("tl.store(out + tl.arange(0, 8), tl.load(out + FAR + tl.arange(0, 8)))", "reads"),
    ] {
        let text = format!(
            "# wrapper: run\n# input: y float32 [64] normal\n# input: x float32 [64] normal\n{IMPORTS}\
             @triton.jit\ndef k(out, FAR: tl.constexpr):\n    {store}\n\n\
             def run(y, x):\n    out = torch.empty_like(x)\n    k[(1,)](out, FAR=-(1 << 38))\n    return out\n"
        );
        let fixture = Fixture::new(Source::new("pass.py", text)).unwrap();
        let prepared = fixture.prepare().unwrap();
        for interpret in [true, false] {
            let options = RunOptions { interpret, ..RunOptions::default() };
            let error = fixture.run(&prepared, options).unwrap_err().to_string();
            assert!(error.contains(verb), "{store}: {error}");
        }
    }
}

/// `out_dtype` other than half makes single precision, as Triton has it, and not a product of lanes of two widths.
#[test]
fn products_of_halves_are_single_or_half() {
    let text = format!(
        "# wrapper: run\n# input: x float16 [16, 16] normal\n{IMPORTS}\
         @triton.jit\ndef k(x, out):\n    i = tl.arange(0, 16)\n    at = i[:, None] * 16 + i[None, :]\n    \
         a = tl.load(x + at)\n    tl.store(out + at, tl.dot(a, a, out_dtype=tl.float64))\n\n\
         def run(x):\n    out = torch.empty((16, 16), dtype=torch.float32, device=x.device)\n    k[(1,)](x, out)\n    return out\n"
    );
    let fixture = Fixture::new(Source::new("pass.py", text)).unwrap();
    let prepared = fixture.prepare().unwrap();
    let dots = prepared.functions().map(|f| f.to_string().matches("fp64").count());
    assert_eq!(dots.sum::<usize>(), 0);
    assert!(fixture.run(&prepared, RunOptions::default()).is_ok());
}
