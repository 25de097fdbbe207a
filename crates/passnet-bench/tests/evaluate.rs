//! Passes through the whole evaluation, one for each verdict.

use passnet_bench::candidate::Candidate;
use passnet_bench::evaluate::{Check, CheckAnswer, EvaluateOptions, Evaluation, evaluate};
use passnet_bench::subject::Subject;
use passnet_bench::timing::TimingOptions;
use passnet_bench::verdict::{Verdict, VerdictKind};
use passnet_engine::native::NativeEngine;
use passnet_graph::{FileName, GraphFiles};
use std::collections::BTreeMap;

const MODEL: &str = "
import torch

class GraphModule(torch.nn.Module):
    def forward(self, x, y):
        tmp_0 = x * y
        tmp_1 = torch.nn.functional.relu(tmp_0, inplace=False)
        return (tmp_1,)
";

const META: &str = "
class Program_weight_tensor_meta_x:
    name = \"x\"
    shape = [16, 100]
    dtype = \"torch.float32\"
    device = \"cpu\"
    mean = 0.0
    std = 1.0
    data = None

class Program_weight_tensor_meta_y:
    name = \"y\"
    shape = [16, 100]
    dtype = \"torch.float32\"
    device = \"cpu\"
    mean = 0.5
    std = 1.0
    data = None
";

/// Says that the first dimension may change.
const CONSTRAINTS: &str = "
from sympy import Symbol
S0 = Symbol(\"S0\")
dynamic_dim_constraint_symbols = [S0]
dynamic_dim_constraint_symbol2example_value = {S0: 16}
dynamic_dim_constraint_relations = []
dynamic_dim_constraint_input_shapes = [([S0, 100], \"x\"), ([S0, 100], \"y\")]
";

/// An honest pass; the tests change one thing at a time.
const PASS: &str = "
import torch
import triton
import triton.language as tl

def pattern(x, y):
    return torch.nn.functional.relu(x * y, inplace=False)

def replacement_args(x, y):
    return (x, y)

@triton.jit
def kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = place < n
    x = tl.load(x_ptr + place, mask=inside)
    y = tl.load(y_ptr + place, mask=inside)
    result = tl.maximum(x * y, 0.0, propagate_nan=tl.PropagateNan.ALL)
    tl.store(out_ptr + place, result, mask=inside)

@torch.fx.wrap
def fused(x, y):
    out = torch.empty_like(x)
    n = x.numel()
    kernel[(triton.cdiv(n, 256),)](x, y, out, n, BLOCK=256)
    return out

def replacement_func():
    return fused
";

fn files() -> GraphFiles {
    GraphFiles::new("graphs/one")
        .with(FileName::Model, MODEL)
        .with(FileName::WeightMeta, META)
        .with(FileName::GraphNet, "{\"framework\": \"torch\"}")
}

fn pass_files(pass: &str) -> BTreeMap<String, String> {
    let names = ("sorted_output_pass_rule_names.json", "[\"fuse\"]");
    [names, ("fuse.py", pass)].map(|(name, text)| (name.to_string(), text.to_string())).into()
}

fn load(pass: &str, rules: bool) -> Result<Candidate, Box<Verdict>> {
    Candidate::from_files(pass_files(pass), None, rules)
}

#[test]
fn passes_in_memory_are_judged_as_those_of_a_folder() {
    let on_disk = |pass: &str| {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("pass_dir");
        std::fs::create_dir(&folder).unwrap();
        for (name, text) in pass_files(pass) {
            std::fs::write(folder.join(name), text).unwrap();
        }
        let found = Candidate::load(&folder, None, true).map(|candidate| candidate.sources);
        (found, format!("{}/", place.path().display()))
    };
    let (found, _) = on_disk(PASS);
    assert_eq!(load(PASS, true).unwrap().sources, found.unwrap());
    // What a verdict says names the files below the folder, and no place of the machine.
    for broken in
        [PASS.replace("def pattern", "def pattrn"), format!("import os\n{PASS}\nos.abort()\n")]
    {
        let (found, place) = on_disk(&broken);
        let verdict = load(&broken, true).unwrap_err();
        assert_eq!(verdict.to_string(), found.unwrap_err().to_string().replace(&place, ""));
        assert!(verdict.to_string().contains("pass_dir/fuse.py"), "{verdict}");
    }
}

fn options() -> EvaluateOptions {
    EvaluateOptions {
        timing: TimingOptions { warmup: 1, trials: 10, seconds: 0.0, ..TimingOptions::default() },
        ..EvaluateOptions::default()
    }
}

fn evaluated(pass: &str) -> Evaluation {
    let candidate = load(pass, false).unwrap();
    evaluate(&NativeEngine, &files(), Subject::Passes(&candidate), &options())
}

/// The honest pass with one piece of text changed.
fn with(honest: &str, changed: &str) -> String {
    assert!(PASS.contains(honest), "{honest}");
    PASS.replace(honest, changed)
}

#[test]
fn an_honest_pass_is_correct_timed_and_asked_everything() {
    load(PASS, true).unwrap();
    let evaluation = evaluated(PASS);
    assert_eq!(evaluation.judged.verdict.kind, VerdictKind::Correct, "{evaluation:?}");
    assert_eq!(
        evaluation.judged.ladder.first_right(),
        Some(-10),
        "the same arithmetic, bit by bit"
    );
    assert_eq!((evaluation.eager_ms.len(), evaluation.candidate_ms.len()), (10, 10));
    assert!(evaluation.judged.speedup.is_some() && evaluation.interval.is_some());
    assert_eq!(evaluation.rewrites[0].count, 1);
    assert_eq!(evaluation.dtype, "float32");
    assert_eq!(evaluation.operations, ["mul", "relu"]);
    let passed = |check: &&Check| check.answer == CheckAnswer::Passed;
    assert_eq!(evaluation.checks.iter().filter(passed).count(), 23, "{:?}", evaluation.checks);
}

#[test]
fn eager_against_itself_is_correct_too() {
    let evaluation = evaluate(&NativeEngine, &files(), Subject::Eager, &options());
    assert_eq!(evaluation.judged.verdict.kind, VerdictKind::Correct);
    assert!(evaluation.rewrites.is_empty() && evaluation.checks.is_empty());
}

#[test]
fn every_way_to_be_wrong_has_its_verdict() {
    let cases = [
        (with("x * y, 0.0,", "x * y * 1.01, 0.0,"), VerdictKind::Accuracy, "elements wrong"),
        (
            with("torch.empty_like(x)", "torch.empty_like(x, dtype=torch.float16)"),
            VerdictKind::DtypeMismatch,
            "float16",
        ),
        (with("return out", "return out[:8]"), VerdictKind::ShapeMismatch, "[8, 100]"),
        (with("relu(x * y, inplace=False)", "gelu(x * y)"), VerdictKind::NoMatch, "gelu"),
        (with("return out\n", "return torch.relu(x * y)\n"), VerdictKind::CompileFail, "fuse.py:"),
        (with("place < n", "place < n + 300"), VerdictKind::RuntimeFail, "program"),
        (with("place < n", "place < n - 1"), VerdictKind::RuntimeFail, "never written"),
        (
            with(
                "tl.store(out_ptr + place, result, mask=inside)",
                "tl.store(out_ptr + place, result, mask=inside)\n    tl.store(x_ptr + place, x, mask=inside)",
            ),
            VerdictKind::CompileFail,
            "writes into its argument `x`",
        ),
        (
            with("return out\n", "return x\n"),
            VerdictKind::RuntimeFail,
            "shares memory with input 0",
        ),
    ];
    for (pass, verdict, evidence) in cases {
        let evaluation = match load(&pass, false) {
            Ok(candidate) => {
                evaluate(&NativeEngine, &files(), Subject::Passes(&candidate), &options())
            }
            Err(verdict) => Evaluation::without_run("one", *verdict),
        };
        let judged = &evaluation.judged;
        assert_eq!(judged.verdict.kind, verdict, "{}\n{pass}", judged.verdict);
        let text = judged.verdict.to_string();
        assert!(text.contains(evidence), "{text} should name {evidence}");
        assert_eq!(judged.speedup.is_some(), verdict == VerdictKind::Accuracy);
    }
}

/// A pass that computes nothing, where nothing is asked of it: no output would tell, and eager's time is not its gain.
#[test]
fn a_match_that_no_output_needs_is_none() {
    let judged = |pass: &str, needed: &str| {
        let candidate = load(pass, false).unwrap();
        let text =
            MODEL.replace("return (tmp_1,)", &format!("tmp_2 = x - y\n        return ({needed},)"));
        assert_ne!(text, MODEL);
        let files = files().with(FileName::Model, text);
        evaluate(&NativeEngine, &files, Subject::Passes(&candidate), &options())
    };
    let nothing = with("x * y, 0.0,", "x * 0.0, 0.0,");
    for pass in [PASS, &nothing] {
        let evaluation = judged(pass, "tmp_2");
        let verdict = &evaluation.judged.verdict;
        assert_eq!(verdict.kind, VerdictKind::NoMatch, "{verdict}");
        assert!(verdict.to_string().contains("what no output of the graph needs"), "{verdict}");
        assert_eq!(evaluation.judged.speedup, None);
        assert!(evaluation.left_out.is_empty());
    }
    let evaluation = judged(PASS, "tmp_1");
    assert_eq!(evaluation.judged.verdict.kind, VerdictKind::Correct);
    assert_eq!(evaluation.left_out, ["tmp_2"], "it is known that eager alone ran this");
    assert_eq!(evaluation.rewrites[0].count, 1);
}

#[test]
fn a_kernel_that_reads_what_nobody_wrote_is_caught_though_its_numbers_are_right() {
    let lazy = with(
        "tl.store(out_ptr + place, result, mask=inside)",
        "old = tl.load(out_ptr + place, mask=inside)\n    \
         tl.store(out_ptr + place, tl.where(old == result, old, result), mask=inside)",
    );
    let evaluation = evaluated(&lazy);
    assert_eq!(evaluation.judged.verdict.kind, VerdictKind::RuntimeFail, "{evaluation:?}");
    assert!(evaluation.judged.verdict.to_string().contains("uninitialized-read"));
}

#[test]
fn right_on_ordinary_values_only_is_not_right() {
    let capped = with(
        "tl.store(out_ptr + place, result, mask=inside)",
        "tl.store(out_ptr + place, tl.where(result > 50.0, 50.0, result), mask=inside)",
    );
    let evaluation = evaluated(&capped);
    assert_eq!(evaluation.judged.verdict.kind, VerdictKind::Accuracy);
    assert!(evaluation.judged.verdict.to_string().contains("with large values"), "{evaluation:?}");
}

/// 16 rows of 100 are computed whatever the size is.
/// `exp` as GPUs compute it: the product with log2(e) is rounded once, which shows where x is large.
#[test]
fn an_exponential_that_rounds_its_argument_is_right_and_one_of_fewer_bits_is_not() {
    let model = MODEL
        .replace("x * y", "torch.exp(x)")
        .replace("torch.nn.functional.relu(tmp_0, inplace=False)", "tmp_0 * y");
    let pass =
        PASS.replace("torch.nn.functional.relu(x * y, inplace=False)", "torch.exp(x) * y").replace(
            "tl.maximum(x * y, 0.0, propagate_nan=tl.PropagateNan.ALL)",
            "tl.exp2(ARGUMENT * 1.4426950408889634) * y",
        );
    let files = files().with(FileName::Model, model);
    let evaluated = |argument: &str| {
        let candidate = load(&pass.replace("ARGUMENT", argument), false).unwrap();
        let found = evaluate(&NativeEngine, &files, Subject::Passes(&candidate), &options());
        found.judged.verdict
    };
    let rounded = evaluated("x");
    assert_eq!(rounded.kind, VerdictKind::Correct, "{rounded}");
    let coarse = evaluated("x.to(tl.float16).to(tl.float32)");
    assert_eq!(coarse.kind, VerdictKind::Accuracy, "{coarse}");
}

#[test]
fn right_at_one_size_only_is_wrong_where_sizes_may_change_and_told_elsewhere() {
    let fixed = with("n = x.numel()", "n = 1600").replace("empty_like", "zeros_like");
    let candidate = load(&fixed, false).unwrap();
    let promised = files().with(FileName::InputTensorConstraints, CONSTRAINTS);
    let evaluation = evaluate(&NativeEngine, &promised, Subject::Passes(&candidate), &options());
    assert_eq!(evaluation.judged.verdict.kind, VerdictKind::Accuracy, "{evaluation:?}");
    let text = evaluation.judged.verdict.to_string();
    assert!(text.contains("with sizes one larger (S0=17)"), "{text}");

    let evaluation = evaluated(&fixed);
    assert_eq!(evaluation.judged.verdict.kind, VerdictKind::Correct, "{evaluation:?}");
    let odd = evaluation.checks.iter().find(|check| check.name == "sizes one larger").unwrap();
    assert_eq!(odd.answer, CheckAnswer::Advice, "{odd:?}");
}

#[test]
fn statistics_that_eager_updates_may_change() {
    let model = MODEL.replace(
        "        return (tmp_1,)",
        "        tmp_2 = torch.nn.functional.batch_norm(tmp_1, mean, var, None, None, True, 0.1, 1e-05)\n        \
         return (tmp_2,)",
    );
    let model = model.replace("self, x, y", "self, x, y, mean, var");
    let statistics = ["mean", "var"].map(|name| {
        let meta = META.split("class ").nth(1).unwrap();
        let meta = meta.replace("[16, 100]", "[100]").replace("_x:", &format!("_{name}:"));
        format!("class {}", meta.replace("\"x\"", &format!("\"{name}\"")))
    });
    let files = files()
        .with(FileName::Model, model)
        .with(FileName::WeightMeta, format!("{META}\n{}", statistics.concat()));
    let candidate = load(PASS, true).unwrap();
    let evaluation = evaluate(&NativeEngine, &files, Subject::Passes(&candidate), &options());
    let verdict = &evaluation.judged.verdict;
    assert_eq!(verdict.kind, VerdictKind::Correct, "{verdict}");
}

#[test]
fn rules_refuse_before_anything_runs() {
    let clock = "import torch\nimport time\nNOW = time.time\n";
    let refused = load(&with("import torch\n", clock), true).unwrap_err();
    assert_eq!(refused.kind, VerdictKind::Integrity);
}

#[test]
fn unreadable_graphs_and_missing_passes_are_verdicts_too() {
    let broken = GraphFiles::new("broken").with(FileName::Model, "def forward(:\n");
    let evaluation = evaluate(&NativeEngine, &broken, Subject::Eager, &options());
    assert_eq!(evaluation.judged.verdict.kind, VerdictKind::ReferenceFail);
    let missing = Candidate::load(std::path::Path::new("no/such/folder"), None, true).unwrap_err();
    assert_eq!(missing.kind, VerdictKind::CompileFail);
}

/// Kernels with several configurations run with the one that was fastest, and the result says which that was.
#[test]
fn what_autotune_chose_is_recorded() {
    let tuned = with(
        "@triton.jit",
        "@triton.autotune(configs=[triton.Config({\"BLOCK\": b}) for b in (64, 256)], key=[\"n\"])\n@triton.jit",
    );
    let tuned = tuned.replace(
        "kernel[(triton.cdiv(n, 256),)](x, y, out, n, BLOCK=256)",
        "kernel[lambda meta: (triton.cdiv(n, meta[\"BLOCK\"]),)](x, y, out, n)",
    );
    load(&tuned, true).unwrap();
    let evaluation = evaluated(&tuned);
    assert_eq!(evaluation.judged.verdict.kind, VerdictKind::Correct, "{evaluation:?}");
    let [chosen] = &evaluation.tuned[..] else { panic!("{:?}", evaluation.tuned) };
    assert_eq!(chosen.key, "kernel(n=1600, float32, float32, float32)");
    assert!(chosen.candidates.iter().all(|candidate| candidate.ms.is_some()), "{chosen:?}");
    let text = serde_json::to_string(&evaluation).unwrap();
    let again: Evaluation = serde_json::from_str(&text).unwrap();
    assert_eq!(again.tuned, evaluation.tuned);
}

/// A row that is longer than the block: nothing of the graph's own sizes shows it.
#[test]
fn sizes_cross_the_blocks_that_a_kernel_names() {
    let model = MODEL
        .replace("        tmp_0 = x * y\n", "")
        .replace("torch.nn.functional.relu(tmp_0, inplace=False)", "x.sum(1)")
        .replace("x, y):", "x):");
    let meta = META.split("class Program_weight_tensor_meta_y").next().unwrap();
    let meta = meta.replace("[16, 100]", "[16, 8]");
    let constraints = CONSTRAINTS
        .replace("S0: 16", "S0: 8")
        .replace("[([S0, 100], \"x\"), ([S0, 100], \"y\")]", "[([16, S0], \"x\")]");
    let files = GraphFiles::new("graphs/rows")
        .with(FileName::Model, model)
        .with(FileName::WeightMeta, meta)
        .with(FileName::GraphNet, "{\"framework\": \"torch\"}")
        .with(FileName::InputTensorConstraints, constraints);
    let pass = |columns: &str| {
        format!(
            "
import torch
import triton
import triton.language as tl

def pattern(x):
    return x.sum(1)

def replacement_args(x):
    return (x,)

@triton.jit
def kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    total = 0.0
    for start in range(0, {columns}, BLOCK):
        place = start + tl.arange(0, BLOCK)
        total += tl.sum(tl.load(x_ptr + row * n + place, mask=place < n, other=0.0))
    tl.store(out_ptr + row, total)

@torch.fx.wrap
def sums(x):
    out = torch.empty((x.shape[0],), dtype=x.dtype, device=x.device)
    kernel[(x.shape[0],)](x, out, x.shape[1], BLOCK=1024)
    return out

def replacement_func():
    return sums
"
        )
    };
    let judged = |text: &str| {
        let candidate = load(text, true).unwrap();
        evaluate(&NativeEngine, &files, Subject::Passes(&candidate), &options()).judged.verdict
    };
    let right = judged(&pass("n"));
    assert_eq!(right.kind, VerdictKind::Correct, "{right}");
    let wrong = judged(&pass("BLOCK"));
    assert_eq!(wrong.kind, VerdictKind::Accuracy, "{wrong}");
    assert!(wrong.to_string().contains("S0=1025"), "{wrong}");
}

/// Habits of real passes that are right: they go through the rules and are judged correct.
#[test]
fn honest_habits_are_correct() {
    let kernel = "
import torch
import triton
import triton.language as tl

@triton.jit
def double(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = place < n
    tl.store(out_ptr + place, tl.load(x_ptr + place, mask=inside) * 2.0, mask=inside)

def launched(x, out):
    double[(triton.cdiv(x.numel(), 64),)](x, out, x.numel(), BLOCK=64)
    return out

def replacement_args(x):
    return (x,)

def replacement_func():
    return wrapper
";
    for (what, body, pattern, wrapper) in [
        (
            "one value that is a tuple",
            "a = x * 2.0; b = a.unbind(0); c = b[0]; d = b[1]; e = c + d; return (e,)",
            "return (x * 2.0).unbind(0)",
            "return launched(x, torch.empty_like(x)).unbind(0)",
        ),
        (
            "a tuple of one",
            "a = x * 2.0; b = a.split(16); c = b[0]; return (c,)",
            "return (x * 2.0).split(16)",
            "return (launched(x, torch.empty_like(x)),)",
        ),
        (
            "a dead intermediate is written",
            "a = x + 1.0; b = a * 2.0; return (b,)",
            "return x * 2.0",
            "return launched(x, x)",
        ),
        (
            "an intermediate is written when its last reader is done",
            "a = x + 1.0; v = a.view(-1); s = v.sum(); b = a * 2.0; c = b + s; return (c,)",
            "return x * 2.0",
            "return launched(x, x)",
        ),
        (
            "an operation without effect is dropped",
            "a = x.repeat(1, 1); b = a * 1.0; c = b + y; return (c,)",
            "return x.repeat(1, 1) * 1.0",
            "return x",
        ),
        (
            "a conversion on the way",
            "a = x.double(); b = a * 2.0; return (b,)",
            "return x * 2.0",
            "return launched(x.to(torch.float64), torch.empty_like(x, dtype=torch.float64))",
        ),
    ] {
        let body = body.replace("; ", "\n        ");
        let start = MODEL.split("        tmp_0").next().unwrap();
        let files = files().with(FileName::Model, format!("{start}        {body}\n"));
        let text =
            format!("{kernel}\ndef pattern(x):\n    {pattern}\n\ndef wrapper(x):\n    {wrapper}\n");
        let candidate = load(&text, true).unwrap_or_else(|verdict| panic!("{what}: {verdict}"));
        let verdict =
            evaluate(&NativeEngine, &files, Subject::Passes(&candidate), &options()).judged.verdict;
        assert_eq!(verdict.kind, VerdictKind::Correct, "{what}: {verdict}");
    }
}

/// What somebody else still reads must not be written.
#[test]
fn a_live_value_is_not_written() {
    let start = MODEL.split("        tmp_0").next().unwrap();
    let body = "a = x + 1.0\n        b = torch.nn.functional.relu(a * y, inplace=False)\n        c = a + b\n        return (c,)\n";
    let files = files().with(FileName::Model, format!("{start}        {body}"));
    let text = with("out = torch.empty_like(x)", "out = x");
    let candidate = load(&text, false).unwrap();
    let verdict =
        evaluate(&NativeEngine, &files, Subject::Passes(&candidate), &options()).judged.verdict;
    assert!(verdict.to_string().contains("writes into its argument `x`"), "{verdict}");
}
