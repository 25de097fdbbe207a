//! The torch engine against the native one, live: needs a Python with PyTorch, named by `PASSNET_PYTHON`, and the plan
//! runner that `cargo build --workspace` makes. `tools/full-check` runs these tests.

use half::{bf16, f16};
use passnet_bench::bench::Bench;
use passnet_bench::candidate::Candidate;
use passnet_bench::evaluate::{EvaluateOptions, Evaluation, evaluate};
use passnet_bench::roofline::Roofline;
use passnet_bench::run::{GraphEvent, RunStore};
use passnet_bench::sample::Sample;
use passnet_bench::score::Scoring;
use passnet_bench::subject::Subject;
use passnet_bench::timing::TimingOptions;
use passnet_bench::tolerance::{BASELINE, Tolerance};
use passnet_bench::verdict::VerdictKind;
use passnet_engine::dump::output_tensors;
use passnet_engine::native::folder::draw_inputs;
use passnet_engine::native::{NativeEngine, Tensor, Wrappers};
use passnet_engine::torch::{TorchEngine, WorkerOptions};
use passnet_engine::{Engine, Precision, RunOptions, Tier};
use passnet_graph::read::read_folder;
use passnet_graph::{DType, Graph, GraphFiles};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Duration;

/// The runner that the build left beside the tests.
fn runner() -> PathBuf {
    let exe = std::env::current_exe().unwrap();
    let path = exe.parent().unwrap().parent().unwrap().join("libpassnet_runner.so");
    assert!(path.is_file(), "the plan runner is not built (`cargo build --workspace`)");
    path
}

fn engine() -> TorchEngine {
    engine_of(Tier::Plan)
}

fn engine_of(tier: Tier) -> TorchEngine {
    let python = std::env::var_os("PASSNET_PYTHON");
    let options = WorkerOptions {
        python: python.expect("PASSNET_PYTHON must name a Python with PyTorch").into(),
        runner: Some(runner()),
        cache: std::env::temp_dir(),
        device: "cpu".into(),
        gpu: None,
        threads: 2,
        memory_limit: 8 << 30,
        call_limit: Duration::from_secs(120),
        tier,
    };
    TorchEngine::start(options).unwrap()
}

/// The compatibility tier where passes can launch kernels.
fn compat_with_triton() -> TorchEngine {
    let compat = engine_of(Tier::Compat);
    assert!(compat.info().unwrap().triton.is_some(), "no Triton beside PyTorch");
    compat
}

fn options() -> EvaluateOptions {
    EvaluateOptions {
        timing: TimingOptions { warmup: 1, trials: 10, seconds: 0.0, ..TimingOptions::default() },
        draws: 0,
        ..EvaluateOptions::default()
    }
}

fn bundled() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bench")
}

/// Every bundled task, and the name of each of its graphs.
fn bundled_samples() -> Vec<Sample> {
    let mut tasks: Vec<PathBuf> = std::fs::read_dir(bundled().join("tasks"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.is_dir())
        .collect();
    tasks.sort();
    tasks.iter().map(|task| Sample::read(task).unwrap()).collect()
}

fn bundled_pass(sample: &Sample) -> Candidate {
    let candidate = Candidate::load(&bundled().join("passes").join(&sample.name), None, true);
    candidate.unwrap_or_else(|verdict| panic!("{}: {verdict}", sample.name))
}

/// Every bundled pass, replayed on PyTorch's memory and held against eager PyTorch.
#[test]
#[ignore = "needs PyTorch; tools/full-check runs it"]
fn bundled_passes_are_right_beside_eager_pytorch() {
    let engine = engine();
    let (mut wrong, mut graphs) = (Vec::new(), 0);
    for sample in bundled_samples() {
        let candidate = bundled_pass(&sample);
        for graph in &sample.graphs {
            graphs += 1;
            let files = sample.graph_files(graph).unwrap();
            let evaluation = evaluate(&engine, &files, Subject::Passes(&candidate), &options());
            let verdict = evaluation.judged.verdict;
            if verdict.kind != VerdictKind::Correct {
                wrong.push(format!("{} {graph}: {verdict}", sample.name));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(graphs >= 128, "only {graphs} graphs");
    assert_eq!(engine.workers_started(), 1, "no worker fell");
}

/// Two workers share the graphs of two tasks: every graph is judged once, results come in the order of the samples, and a
/// second run finds all of them in the store, whichever worker asks.
#[test]
#[ignore = "needs PyTorch; tools/full-check runs it"]
fn several_workers_judge_as_one_does() {
    let engines = [engine(), engine()];
    let bench = |engine| Bench {
        engine,
        subject: Subject::PASSES,
        options: options(),
        rules: true,
        roofline: Roofline::default(),
    };
    let benches: Vec<Bench<'_>> =
        engines.iter().map(|engine| bench(engine as &dyn Engine)).collect();
    let samples: Vec<Sample> = bundled_samples().into_iter().take(2).collect();
    let passes: Vec<PathBuf> =
        samples.iter().map(|sample| bundled().join("passes").join(&sample.name)).collect();
    let work: Vec<(&Sample, &Path)> =
        samples.iter().zip(&passes).map(|(sample, folder)| (sample, &**folder)).collect();
    let folder = tempfile::tempdir().unwrap();
    let store = Mutex::new(RunStore::open(folder.path()).unwrap());
    let first = Bench::samples(&benches, &work, Some(&store), &|_| {}).unwrap();
    for (judged, sample) in first.iter().zip(&samples) {
        let names: Vec<&String> =
            judged.events.iter().map(|e| &e.evaluation.judged.graph).collect();
        assert_eq!(names, sample.graphs.iter().collect::<Vec<_>>(), "in order");
        assert!(judged.not_judged.is_empty());
        let wrong = |e: &&GraphEvent| e.evaluation.judged.verdict.kind != VerdictKind::Correct;
        assert_eq!(judged.events.iter().find(wrong), None);
    }
    let again = Bench::samples(&benches[1..], &work, Some(&store), &|_| {}).unwrap();
    assert_eq!(again, first, "known by identity, not by worker");
    assert!(engines.iter().all(|engine| engine.workers_started() == 1), "no worker fell");
}

/// The only exception, which may not grow: two of 294,912 elements, where a sum of float16 numbers nearly cancels after the
/// native engine's layer norm has rounded the other way than PyTorch's.
const KNOWN_BEYOND: [(&str, &str, usize); 1] = [("graphs/float16_2x128x1152", "eager", 2)];

/// Every bundled graph, as it is and rewritten, on the same inputs in both engines: within the baseline tolerance of each
/// other, or, as PassBench judges a candidate, each element as close to the float64 result as PyTorch's within the tolerance.
/// (In half precision every operation rounds, and where results cancel one last bit of an intermediate one is more than
/// the tolerance of the result.)
#[test]
#[ignore = "needs PyTorch; tools/full-check runs it"]
fn both_engines_compute_the_same() {
    let torch = engine();
    let (mut wrong, mut graphs) = (Vec::new(), 0);
    for sample in bundled_samples() {
        let candidate = bundled_pass(&sample);
        for name in &sample.graphs {
            graphs += 1;
            let files = sample.graph_files(name).unwrap();
            let original = read_folder(&files).unwrap().graph;
            let rewritten = candidate.rewrite(&original).unwrap().graph;
            let none = Wrappers::default();
            for (what, graph, wrappers) in
                [("eager", &original, &none), ("pass", &rewritten, candidate.wrappers())]
            {
                let as_written = Precision::AsWritten;
                let native = run(&NativeEngine, &files, graph, wrappers, as_written);
                let torch = run(&torch, &files, graph, wrappers, as_written);
                let Some(found) = difference(&native, &torch) else { continue };
                let truth = run(&NativeEngine, &files, &original, &none, Precision::Double);
                let beyond = further_from(&truth, &native, &torch);
                let known = KNOWN_BEYOND.iter().find(|known| *known.0 == **name && known.1 == what);
                if beyond > known.map_or(0, |known| known.2) {
                    let errors = format!("{beyond} of them further from float64 than PyTorch's");
                    wrong.push(format!("{} {name}, {what}: {found}; {errors}", sample.name));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(graphs >= 128, "only {graphs} graphs");
}

fn run(
    engine: &dyn Engine,
    files: &GraphFiles,
    graph: &Graph,
    wrappers: &Wrappers,
    precision: Precision,
) -> Vec<Tensor> {
    let original = read_folder(files).unwrap().graph;
    let inputs = draw_inputs(files, &original, 123, None).unwrap();
    let prepared = engine.prepare(graph, precision, wrappers).unwrap();
    output_tensors(&prepared.run(&inputs, &RunOptions::default()).unwrap()).unwrap()
}

/// Where two engines differ by more than the baseline tolerance of the type.
fn difference(native: &[Tensor], torch: &[Tensor]) -> Option<String> {
    if native.len() != torch.len() {
        return Some(format!("{} outputs and {}", native.len(), torch.len()));
    }
    native.iter().zip(torch).find_map(|(one, two)| {
        if one.dtype() != two.dtype() || one.shape() != two.shape() {
            return Some(format!(
                "{:?} {:?}",
                (one.dtype(), one.shape()),
                (two.dtype(), two.shape())
            ));
        }
        let (a, b) = (one.to_bytes().unwrap(), two.to_bytes().unwrap());
        let Some(tolerance) = Tolerance::of(one.dtype(), BASELINE) else {
            return (a != b).then(|| "integers differ".to_string());
        };
        let (a, b) = (numbers(&a, one.dtype()), numbers(&b, one.dtype()));
        let wrong = count_wrong(&b, &a, tolerance);
        (wrong > 0).then(|| format!("{wrong} of {} elements differ", a.len()))
    })
}

/// Elements of the native engine that are further from the float64 result than PyTorch's, by more than the tolerance.
fn further_from(truth: &[Tensor], native: &[Tensor], torch: &[Tensor]) -> usize {
    let floats = |tensor: &Tensor| numbers(&tensor.to_bytes().unwrap(), tensor.dtype());
    let mut further = 0;
    for ((truth, native), torch) in truth.iter().zip(native).zip(torch) {
        let Some(tolerance) = Tolerance::of(native.dtype(), BASELINE) else { continue };
        for ((truth, ours), theirs) in floats(truth).iter().zip(floats(native)).zip(floats(torch)) {
            let allowed = tolerance.atol + tolerance.rtol * truth.abs();
            further += usize::from((ours - truth).abs() > (theirs - truth).abs() + allowed);
        }
    }
    further
}

fn count_wrong(expected: &[f64], found: &[f64], tolerance: Tolerance) -> usize {
    let is_wrong = |(expected, found): &(&f64, &f64)| {
        let allowed = tolerance.atol + tolerance.rtol * expected.abs();
        let is_near = (*found - *expected).abs() <= allowed;
        !(is_near || found == expected || found.is_nan() && expected.is_nan())
    };
    expected.iter().zip(found).filter(is_wrong).count()
}

fn numbers(bytes: &[u8], dtype: DType) -> Vec<f64> {
    let chunks = bytes.chunks_exact(dtype.size());
    let number = |chunk: &[u8]| match *chunk {
        [a, b] if dtype == DType::BFloat16 => bf16::from_le_bytes([a, b]).to_f64(),
        [a, b] => f16::from_le_bytes([a, b]).to_f64(),
        [a, b, c, d] => f64::from(f32::from_le_bytes([a, b, c, d])),
        ref wide => f64::from_le_bytes(wide.try_into().unwrap()),
    };
    chunks.map(number).collect()
}

/// Eager PyTorch against itself through the same door.
#[test]
#[ignore = "needs PyTorch; tools/full-check runs it"]
fn eager_pytorch_is_equal_to_itself() {
    let engine = engine();
    let task = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bench/tasks/swiglu");
    let sample = Sample::read(&task).unwrap();
    for graph in &sample.graphs {
        let files = sample.graph_files(graph).unwrap();
        let evaluation = evaluate(&engine, &files, Subject::Eager, &options());
        assert_eq!(evaluation.judged.verdict.kind, VerdictKind::Correct, "{evaluation:?}");
        assert_eq!(evaluation.judged.ladder.first_right(), Some(-10));
    }
}

/// No kernel, no launch: what the plan returns are views of the argument, laid out as eager's.
#[test]
#[ignore = "needs PyTorch; tools/full-check runs it"]
fn views_are_handed_back_as_they_are() {
    let engine = engine();
    let folder = tempfile::tempdir().unwrap();
    let pass = "import torch\n\ndef pattern(gate_up):\n    gate, up = gate_up.chunk(2, dim=-1)\n    return gate, up\n\n\
        def replacement_args(gate_up):\n    return (gate_up,)\n\n\
        @torch.fx.wrap\ndef wrapper(gate_up):\n    return gate_up.chunk(2, -1)[0], gate_up.chunk(2, -1)[1]\n\n\
        def replacement_func():\n    return wrapper\n";
    std::fs::write(folder.path().join("mine.py"), pass).unwrap();
    let listed = folder.path().join("sorted_output_pass_rule_names.json");
    std::fs::write(listed, r#"["mine"]"#).unwrap();
    let candidate = Candidate::load(folder.path(), None, true).unwrap();
    let sample = Sample::read(&bundled().join("tasks/swiglu")).unwrap();
    for graph in &sample.graphs {
        let files = sample.graph_files(graph).unwrap();
        for engine in [&engine as &dyn Engine, &NativeEngine] {
            let evaluation = evaluate(engine, &files, Subject::Passes(&candidate), &options());
            let verdict = &evaluation.judged.verdict;
            assert_eq!(verdict.kind, VerdictKind::Correct, "{graph}: {verdict}");
        }
    }
}

/// A pass for the task `swiglu` with a kernel that an object launches, which no plan can.
const SWIGLU: &str = r"
import torch
import triton
import triton.language as tl

def pattern(gate_up):
    gate, up = gate_up.chunk(2, dim=-1)
    return up * torch.nn.functional.silu(gate, inplace=False)

def replacement_args(gate_up):
    return (gate_up,)

@triton.jit
def kernel(packed, out, width, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    column = tl.arange(0, BLOCK)
    inside = column < width
    gate = tl.load(packed + row * 2 * width + column, mask=inside, other=0.0).to(tl.float32)
    up = tl.load(packed + row * 2 * width + width + column, mask=inside, other=0.0).to(tl.float32)
    silu = (gate * tl.sigmoid(gate)).to(out.dtype.element_ty).to(tl.float32)
    tl.store(out + row * width + column, (up * silu).to(out.dtype.element_ty), mask=inside)

class Launch:
    def __init__(self, kernel):
        self.kernel = kernel

    def __call__(self, gate_up):
        *lead, packed = gate_up.shape
        out = torch.empty((*lead, packed // 2), dtype=gate_up.dtype, device=gate_up.device)
        block = triton.next_power_of_2(packed // 2)
        self.kernel[(gate_up.numel() // packed,)](gate_up, out, packed // 2, BLOCK=block)
        return out

right = Launch(kernel)

@torch.fx.wrap
def wrapper(gate_up):
BODY

def replacement_func():
    return wrapper
";

/// That pass with a wrapper of the given body.
fn swiglu_with(body: &str) -> (tempfile::TempDir, Candidate) {
    let folder = tempfile::tempdir().unwrap();
    let pass = SWIGLU.replace("BODY", body);
    std::fs::write(folder.path().join("mine.py"), pass).unwrap();
    let listed = folder.path().join("sorted_output_pass_rule_names.json");
    std::fs::write(listed, r#"["mine"]"#).unwrap();
    // The rules would refuse most of these before anything runs; here the structure must hold without them.
    let candidate = Candidate::load(folder.path(), None, false);
    (folder, candidate.unwrap_or_else(|verdict| panic!("{verdict}")))
}

fn swiglu(engine: &TorchEngine, body: &str) -> Evaluation {
    let sample = Sample::read(&bundled().join("tasks/swiglu")).unwrap();
    let files = sample.graph_files(&sample.graphs[0]).unwrap();
    let (_folder, candidate) = swiglu_with(body);
    evaluate(engine, &files, Subject::Passes(&candidate), &options())
}

fn kind(evaluation: &Evaluation) -> VerdictKind {
    evaluation.judged.verdict.kind
}

#[test]
#[ignore = "needs PyTorch, Triton and a sandbox; tools/full-check runs it"]
fn a_pass_without_a_plan_runs_in_the_compatibility_tier_only() {
    let (plan, compat) = (engine(), compat_with_triton());
    let body = "    return right(gate_up)";
    let without = swiglu(&plan, body);
    assert_eq!(kind(&without), VerdictKind::CompileFail, "{}", without.judged.verdict);
    assert_eq!(without.tier, Tier::Plan);
    let with = swiglu(&compat, body);
    assert_eq!(kind(&with), VerdictKind::Correct, "{}", with.judged.verdict);
    assert_eq!((with.tier, with.judged.speedup), (Tier::Compat, None));
    assert_eq!(with.judged.scored(Scoring::Strict).speedup_at(BASELINE), None, "not scored");
    // A pass that has a plan is not sent there.
    let sample = Sample::read(&bundled().join("tasks/swiglu")).unwrap();
    let files = sample.graph_files(&sample.graphs[0]).unwrap();
    let planned = evaluate(&compat, &files, Subject::Passes(&bundled_pass(&sample)), &options());
    assert_eq!((kind(&planned), planned.tier), (VerdictKind::Correct, Tier::Plan));
    assert!(planned.judged.speedup.is_some());
}

#[test]
#[ignore = "needs PyTorch, Triton and a sandbox; tools/full-check runs it"]
fn pytorch_does_not_compute_for_a_pass_of_the_compatibility_tier() {
    let compat = compat_with_triton();
    for body in [
        "    return right(gate_up) + 0",
        "    return right(gate_up).clone()",
        "    return getattr(torch, 'abs')(right(gate_up))",
        "    return torch.ops.aten.relu(right(gate_up))",
        "    return right(gate_up).as_subclass(torch.Tensor).mul(1)",
        "    return torch.cat([right(gate_up)])",
        "    ones = torch.ones(4)\n    ones @ ones\n    return right(gate_up)",
        "    return torch.compile(lambda x: x * 1)(right(gate_up))",
        "    return right(gate_up) if gate_up.sum() else gate_up",
    ] {
        let evaluation = swiglu(&compat, body);
        let verdict = &evaluation.judged.verdict;
        assert_eq!(verdict.kind, VerdictKind::RuntimeFail, "{body}: {verdict}");
        assert!(verdict.to_string().contains("unauthorized operator"), "{body}: {verdict}");
    }
}

#[test]
#[ignore = "needs PyTorch, Triton and a sandbox; tools/full-check runs it"]
fn nothing_is_won_by_cheating_in_the_compatibility_tier() {
    let compat = compat_with_triton();
    let secret = tempfile::NamedTempFile::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let secret = secret.path().display().to_string();
    let reads = format!("    open({secret:?}).read()\n    return right(gate_up)");
    let connects = "    import socket\n    socket.socket().connect(('127.0.0.1', 1))\n    return right(gate_up)";
    let starts = "    import subprocess\n    subprocess.run(['/bin/true'], check=True)\n    return right(gate_up)";
    for body in [reads.as_str(), connects, starts] {
        let evaluation = swiglu(&compat, body);
        assert_eq!(kind(&evaluation), VerdictKind::RuntimeFail, "{}", evaluation.judged.verdict);
    }
    // Whatever is patched, printed or claimed inside, the comparison happens outside.
    let patches = "    import time\n    torch.allclose = torch.equal = lambda *_, **__: True\n    \
                   time.perf_counter = lambda: 0.0\n    print('status: success, speedup 100')\n    \
                   return torch.zeros_like(right(gate_up))";
    let evaluation = swiglu(&compat, patches);
    assert_eq!(kind(&evaluation), VerdictKind::Accuracy, "{}", evaluation.judged.verdict);
    assert_eq!(evaluation.judged.speedup, None);
    let writes_frames =
        "    import os\n    os.write(3, b'PNW1' + b'\\xff' * 12)\n    return right(gate_up)";
    let hangs = "    import os\n    os.kill(os.getpid(), 9)";
    for body in [writes_frames, hangs] {
        let evaluation = swiglu(&compat, body);
        assert_eq!(kind(&evaluation), VerdictKind::RuntimeFail, "{}", evaluation.judged.verdict);
    }
    assert_eq!(compat.workers_started(), 1, "the trusted worker never fell");
}
