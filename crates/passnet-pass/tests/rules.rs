//! Every rule is held to its own documentation: its example trips it, its honest look-alike does not.

use passnet_graph::syntax::Source;
use passnet_pass::load::{Bindings, PassFile, Program};
use passnet_pass::rules::{Finding, RULES, Severity, check};
use passnet_pass::trace::{Dialect, trace};

fn findings(text: &str) -> Vec<Finding> {
    let program = Program::from_source(Source::new("pass.py", text)).unwrap();
    let bindings = Bindings::of(&program);
    let file =
        PassFile { name: "pass".into(), module: program.ids().next().unwrap(), is_input: false };
    let traced = trace(&program, &bindings, &file, Dialect::Plain).ok();
    check(&program, &bindings, &file, traced.as_ref())
}

#[test]
fn every_example_trips_its_rule_and_every_look_alike_does_not() {
    for rule in RULES {
        let tripped = findings(&rule.example.text());
        let own: Vec<&Finding> = tripped.iter().filter(|f| f.rule == rule.id).collect();
        assert!(
            !own.is_empty(),
            "{}: the example passes\n{tripped:?}\n{}",
            rule.id,
            rule.example.text()
        );
        assert!(own.iter().any(|f| f.severity >= rule.severity), "{}: {own:?}", rule.id);
        let honest = findings(&rule.honest.text());
        let own: Vec<&Finding> = honest.iter().filter(|f| f.rule == rule.id).collect();
        assert!(own.is_empty(), "{}: {own:?}", rule.id);
        assert!(honest.iter().all(|f| f.severity < Severity::Refuse), "{}: {honest:?}", rule.id);
    }
}

#[test]
fn rules_are_documented_and_in_order() {
    let ids: Vec<&str> = RULES.iter().map(|rule| rule.id).collect();
    assert!(ids.is_sorted());
    for rule in RULES {
        assert!(
            !rule.what.is_empty() && !rule.why.is_empty() && !rule.limits.is_empty(),
            "{}",
            rule.id
        );
        assert!(!rule.instead.is_empty(), "{}", rule.id);
    }
}

/// The lines of findings that refuse the pass.
fn refused(text: &str) -> Vec<(&'static str, usize)> {
    let findings = findings(text);
    findings.iter().filter(|f| f.severity == Severity::Refuse).map(|f| (f.rule, f.line)).collect()
}

const KERNEL: &str = "import torch\nimport triton\nimport triton.language as tl\n@triton.jit\ndef kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):\n    tl.store(out_ptr, tl.load(x_ptr))\n";
const REST: &str = "def pattern(x):\n    return torch.relu(x)\ndef replacement_args(x):\n    return (x,)\ndef replacement_func():\n    return wrapper\n";

#[test]
fn the_framework_is_recognised_through_every_disguise() {
    for body in [
        "y = torch.relu(x)",
        "t = torch\n    y = t.relu(x)",
        "t = u = torch\n    y = u.relu(x)",
        "f = torch.relu\n    y = f(x)",
        "y = getattr(torch, 'relu')(x)",
        "f = torch.relu if n else None\n    y = f(x)",
        "from torch import relu\n    y = relu(x)",
        "from torch.nn import functional as G\n    y = G.relu(x)",
        "import torch.nn.functional\n    y = torch.nn.functional.relu(x)",
        "y = list(map(torch.relu, [x]))",
        "y = torch.ops.aten.relu(x)",
        "y = (lambda v: torch.relu(v))(x)",
        "y = torch.compile(lambda v: v)(x)",
        "y = torch.Tensor.relu(x)",
    ] {
        let text = format!(
            "{KERNEL}def wrapper(x):\n    out = torch.empty_like(x)\n    n = x.numel()\n    {body}\n    kernel[(1,)](x, out, n, BLOCK=64)\n    return out\n{REST}"
        );
        assert!(
            refused(&text).iter().any(|(rule, _)| *rule == "framework-call"),
            "{body}: {:?}",
            findings(&text)
        );
    }
}

#[test]
fn traced_helpers_may_use_the_framework() {
    let text = format!(
        "{KERNEL}def helper(x):\n    return torch.relu(x) + 1\ndef wrapper(x):\n    out = torch.empty_like(x)\n    kernel[(1,)](x, out, x.numel(), BLOCK=64)\n    return out\ndef pattern(x):\n    return helper(x)\ndef replacement_args(x):\n    return (x,)\ndef replacement_func():\n    return wrapper\n"
    );
    assert_eq!(refused(&text), []);
}

/// A view needs no kernel; anything that computes, allocates or copies does.
#[test]
fn only_views_of_views_need_no_kernel() {
    let without_kernel = |wrapper: &str, pattern: &str| {
        let text = format!(
            "import torch\ndef wrapper(x):\n    {wrapper}\ndef pattern(x):\n    return {pattern}\ndef replacement_args(x):\n    return (x,)\ndef replacement_func():\n    return wrapper\n"
        );
        !refused(&text).iter().any(|(rule, _)| *rule == "no-kernel")
    };
    for (wrapper, pattern) in [
        ("return x.view(2, -1)", "x.reshape(2, -1)"),
        ("return x[:, 0]", "x[:, 0]"),
        ("return x", "x.contiguous()"),
        ("return x", "torch.nn.functional.dropout(x, 0.1, False, False)"),
        ("return x.transpose(0, 1).unsqueeze(0)", "x.t().unsqueeze(0)"),
        ("return x", "x * 1.0"),
        ("return x.t()", "(1 * x / 1.0 - 0).t()"),
        ("return x", "x.repeat(1, 1)"),
        ("return x", "x.tile((1, 1))"),
    ] {
        assert!(without_kernel(wrapper, pattern), "{wrapper} for {pattern}");
    }
    for (wrapper, pattern) in [
        ("return x", "torch.relu(x)"),
        ("return x", "x + 0"),
        ("return x", "x * 1.5"),
        ("return x", "x.repeat(1, 2)"),
        ("return x", "1.0 / x"),
        ("return x", "x.relu_()"),
        ("return x", "torch.nn.functional.dropout(x, 0.1, True, False)"),
        ("return x.expand(2, -1)", "torch.cat([x, x])"),
        // Copies and allocations are work, whatever is replaced.
        ("return x.contiguous()", "x.contiguous()"),
        ("return x.reshape(2, -1)", "x.reshape(2, -1)"),
        ("return torch.empty_like(x)", "x.contiguous()"),
        ("return x.new_zeros(3)", "x.contiguous()"),
        ("return x * 1", "x.contiguous()"),
        ("return [y for y in (x,)][0]", "x.contiguous()"),
        ("return (lambda y: y)(x)", "x.contiguous()"),
    ] {
        assert!(!without_kernel(wrapper, pattern), "{wrapper} for {pattern}");
    }
}

#[test]
fn unreached_code_is_only_noted() {
    let text = format!(
        "{KERNEL}def reference(x):\n    return torch.relu(x)\ndef wrapper(x):\n    out = torch.empty_like(x)\n    kernel[(1,)](x, out, x.numel(), BLOCK=64)\n    return out\n{REST}"
    );
    assert_eq!(refused(&text), []);
    assert!(
        findings(&text).iter().any(|f| f.rule == "framework-call" && f.severity == Severity::Note)
    );
}

#[test]
fn helper_files_are_checked_too() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    write("sorted_output_pass_rule_names.json", "[\"main\"]");
    write(
        "main.py",
        &format!(
            "{KERNEL}from pass_dir.helper import compute\ndef wrapper(x):\n    out = torch.empty_like(x)\n    compute(x)\n    kernel[(1,)](x, out, 4, BLOCK=64)\n    return out\n{REST}"
        ),
    );
    write(
        "helper.py",
        "import torch\nimport subprocess\ndef compute(x):\n    subprocess.run([])\n    return torch.relu(x)\n",
    );
    let set = passnet_pass::load::load(folder.path(), &Default::default());
    let bindings = Bindings::of(&set.program);
    let found = check(&set.program, &bindings, &set.passes[0], None);
    let in_helper: Vec<&str> =
        found.iter().filter(|f| f.file.ends_with("helper.py")).map(|f| f.rule).collect();
    assert_eq!(in_helper, ["forbidden-module", "framework-call"]);
}

#[test]
fn honest_controls_pass() {
    for (what, body) in [
        (
            "workspace reuse",
            "global WORKSPACE\n    if WORKSPACE is None or WORKSPACE.numel() < n:\n        WORKSPACE = torch.empty(n, device=x.device)",
        ),
        ("tuning by shape", "block = 1024 if x.shape[0] > 128 else 256"),
        ("helper functions", "grid = grid_for(n)"),
        ("constants", "scale = SCALE * 2"),
        ("contiguous input", "x = x.contiguous()"),
        ("asserting", "assert x.is_contiguous(), 'layout'"),
        ("empty input", "if n == 0:\n        raise ValueError('empty')"),
    ] {
        let text = format!(
            "{KERNEL}WORKSPACE = None\nSCALE = 0.5\ndef grid_for(n):\n    return (triton.cdiv(n, 64),)\ndef wrapper(x):\n    out = torch.empty_like(x)\n    n = x.numel()\n    {body}\n    kernel[(1,)](x, out, n, BLOCK=64)\n    return out\n{REST}"
        );
        assert_eq!(refused(&text), [], "{what}");
    }
}

/// A pass whose wrapper holds these lines, with these at the top of the file.
fn with_wrapper(top: &str, body: &str) -> String {
    let body = body.replace('\n', "\n    ");
    format!(
        "{KERNEL}{top}\ndef wrapper(x):\n    out = torch.empty_like(x)\n    n = x.numel()\n    {body}\n    kernel[(1,)](x, out, n, BLOCK=64)\n    return out\n{REST}"
    )
}

#[test]
fn honest_habits_pass() {
    let classes = "from dataclasses import dataclass\nfrom enum import IntEnum\nclass Cfg:\n    BLOCK = 64\n    @staticmethod\n    def grid(n):\n        return (triton.cdiv(n, Cfg.BLOCK),)\nclass Mode(IntEnum):\n    A = 0\n@dataclass(frozen=True)\nclass Tuning:\n    block: int = 64\nTUNING = Tuning(block=32)\nALIGN = 16";
    for body in [
        "if x.numel() == 0:\n    return torch.empty_like(x)",
        "if n == 0:\n    return out",
        "if not x.numel():\n    return torch.empty_like(x)",
        "if 0 in x.shape:\n    return torch.empty_like(x)",
        "rows, cols = x.shape\nif rows == 0 or cols == 0:\n    return torch.zeros_like(x)",
        "if len(x) == 0:\n    return torch.empty_like(x)",
        "out.zero_()",
        "out.fill_(float('-inf'))",
        "sums = torch.empty(4)\nsums.view(2, 2).fill_(1.0)\nsums[:2].zero_()",
        "sums = x.new_empty(4)\nsums.zero_()",
        "block = Cfg.BLOCK + TUNING.block + Mode.A",
        "grid = Cfg.grid(n)",
        "vector = 4 if x.data_ptr() % 16 == 0 else 1",
        "vector = 4 if x.data_ptr() % ALIGN == 0 and x.data_ptr() & 15 == 0 else 1",
    ] {
        let text = with_wrapper(classes, body);
        assert_eq!(refused(&text), [], "{body}\n{:?}", findings(&text));
    }
}

#[test]
fn what_hides_behind_honest_habits_is_refused() {
    let top = "CACHE = {}\nLAST = [None, None]\nLAST_X = None\nclass Cfg:\n    LAST = None\n    @staticmethod\n    def compute(v):\n        return torch.relu(v)\nclass Holder:\n    pass\nHOLDER = Holder()";
    for (rule, body) in [
        ("unwritten-output", "if n == 1:\n    return torch.empty_like(x)"),
        ("unwritten-output", "n -= n\nif n == 0:\n    return torch.empty_like(x)"),
        ("unwritten-output", "m = 0\nif m == 0:\n    return torch.empty_like(x)"),
        ("unwritten-output", "m = n * 0\nif m == 0:\n    return torch.empty_like(x)"),
        (
            "unwritten-output",
            "y = torch.empty(0)\nif y.numel() == 0:\n    return torch.empty_like(x)",
        ),
        ("unwritten-output", "if n == 0 or n != 1:\n    return torch.empty_like(x)"),
        ("tensor-method", "x.zero_()"),
        ("tensor-method", "x.view(-1).fill_(3.0)"),
        ("tensor-method", "y = x\ny.zero_()"),
        ("tensor-method", "y = torch.as_tensor(x)\ny.zero_()"),
        ("tensor-method", "a = b\nb = a\na.zero_()"),
        ("tensor-method", "out.mul_(2.0)"),
        ("pointer-identity", "slot = x.data_ptr() % 4096"),
        ("pointer-identity", "slot = x.data_ptr() & 0xFFFFF0"),
        ("pointer-identity", "slot = x.data_ptr() % n"),
        ("pointer-identity", "slot = x.data_ptr() % 100"),
        ("pointer-identity", "slot = hash(x) % 16"),
        ("pointer-identity", "p = x.data_ptr()\naligned = p % 16 == 0"),
        ("framework-call", "y = Cfg.compute(x)"),
        ("cached-state", "if x is LAST[0]:\n    return LAST[1]\nLAST[0] = x\nLAST[1] = out"),
        ("cached-state", "global LAST_X\nsame = x is LAST_X\nLAST_X = n"),
        ("cached-state", "global LAST_X\nLAST_X = out"),
        ("cached-state", "global LAST_X\nif LAST_X is not None:\n    return LAST_X\nLAST_X = 1"),
        ("cached-state", "y = CACHE.get(n)\nif y is not None:\n    return y\nCACHE[n] = 1"),
        ("cached-state", "CACHE.setdefault('out', out)"),
        ("cached-state", "CACHE[n] = (x, 1)"),
        ("cached-state", "global LAST_X\nLAST_X = lambda: (x, out)"),
        ("cached-state", "wrapper.last = out"),
        ("cached-state", "Cfg.LAST = x.view(-1)"),
        ("cached-state", "HOLDER.last = out"),
        (
            "cached-state",
            "if x.shape in CACHE:\n    return CACHE[x.shape].view(-1)\nCACHE[x.shape] = 0",
        ),
    ] {
        let text = with_wrapper(top, body);
        let found = refused(&text);
        assert!(found.iter().any(|(found, _)| *found == rule), "{body}\n{:?}", findings(&text));
    }
}

/// What only a program runs is nobody's business; what an import runs is, wherever it stands.
#[test]
fn only_what_an_import_runs_is_looked_at() {
    let test = "import subprocess\n    subprocess.run([])\n    print(torch.relu(torch.ones(3)))\n    wrapper(torch.ones(3))";
    let guarded = format!("{}if __name__ == '__main__':\n    {test}\n", with_wrapper("", "pass"));
    assert_eq!(findings(&guarded), findings(&with_wrapper("", "pass")));
    for disguise in [
        "if __name__ != '__main__':",
        "if __name__ == '__main__' or True:",
        "__name__ = '__main__'\nif __name__ == '__main__':",
        "if __name__ == '__main__':\n    pass\nelse:",
    ] {
        let text = format!("{}{disguise}\n    {test}\n", with_wrapper("", "pass"));
        let rules: Vec<&str> = refused(&text).into_iter().map(|(rule, _)| rule).collect();
        assert!(rules.contains(&"forbidden-module"), "{disguise}: {rules:?}");
    }
    // A wrapper cannot come from there.
    let text = format!(
        "{KERNEL}if __name__ == '__main__':\n    def wrapper(x):\n        return x\n{REST}"
    );
    let program = Program::from_source(Source::new("pass.py", text)).unwrap();
    let bindings = Bindings::of(&program);
    let file =
        PassFile { name: "pass".into(), module: program.ids().next().unwrap(), is_input: false };
    let error = trace(&program, &bindings, &file, Dialect::Plain).unwrap_err();
    assert!(error[0].to_string().contains("`wrapper` is not defined"), "{error:?}");
}

/// An argument may be filled where the pattern updates it, too.
#[test]
fn an_argument_is_filled_only_where_eager_fills_it() {
    let text = |pattern: &str| {
        format!(
            "{KERNEL}def wrapper(x):\n    out = torch.empty_like(x)\n    kernel[(1,)](x, out, 4, BLOCK=64)\n    x.zero_()\n    return out\ndef pattern(x):\n    y = torch.relu(x)\n    {pattern}\n    return y\ndef replacement_args(x):\n    return (x,)\ndef replacement_func():\n    return wrapper\n"
        )
    };
    assert_eq!(refused(&text("x.zero_()")), []);
    assert_eq!(refused(&text("z = x.sin()")).first().map(|found| found.0), Some("tensor-method"));
}

/// Whoever is refused reads what to write instead.
#[test]
fn findings_say_what_to_write_instead() {
    for rule in RULES {
        for finding in findings(&rule.example.text()).iter().filter(|f| f.rule == rule.id) {
            let asks = finding.severity > Severity::Note;
            assert_eq!(finding.message.ends_with(rule.instead), asks, "{finding:?}");
        }
    }
}
