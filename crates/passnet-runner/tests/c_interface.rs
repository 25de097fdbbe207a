//! The C interface as a Python process uses it: plans as JSON, buffers by address.

use passnet_graph::syntax::Source;
use passnet_kernel::exec::{PreparedPlan, RunOptions, gather};
use passnet_kernel::fixture::Fixture;
use passnet_kernel::plan::{Init, Step};
use passnet_runner::{
    BAD_CALL, KERNEL_FAILED, Plan, pn_error, pn_plan_cpu, pn_plan_cuda, pn_plan_free, pn_plan_run,
    pn_version,
};
use serde_json::json;
use std::path::Path;

fn fixture(name: &str) -> Fixture {
    let path =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../passnet-kernel/tests/kernels").join(name);
    let text = std::fs::read_to_string(&path).unwrap();
    Fixture::new(Source::new(name, text)).unwrap()
}

fn request(prepared: &PreparedPlan) -> String {
    let kernels: Vec<String> = prepared.functions().map(ToString::to_string).collect();
    json!({ "plan": prepared.plan(), "kernels": kernels }).to_string()
}

fn last_error() -> String {
    let mut text = vec![0u8; 4096];
    // SAFETY: as long as it says.
    let length = unsafe { pn_error(text.as_mut_ptr(), text.len()) };
    text.truncate(length);
    String::from_utf8(text).unwrap()
}

fn make(json: &str) -> *mut Plan {
    // SAFETY: a string is as long as it says.
    unsafe { pn_plan_cpu(json.as_ptr(), json.len()) }
}

/// Buffers at addresses that every type can use: words, and the bytes that count.
struct Buffers(Vec<(Vec<u64>, usize)>);

impl Buffers {
    /// Inputs hold their data, the rest is poisoned: the plan fills what it fills itself.
    fn of(fixture: &Fixture) -> Self {
        let content = |init: &Init, bytes: usize| match init {
            Init::Input(index) => fixture.header.data(*index),
            _ => vec![0xcb; bytes],
        };
        let specs = fixture.plan.buffers.iter();
        Buffers(
            specs
                .map(|spec| {
                    let mut bytes = content(&spec.init, spec.bytes() as usize);
                    let length = bytes.len();
                    bytes.resize(length.next_multiple_of(8), 0);
                    let word = |chunk: &[u8]| u64::from_ne_bytes(chunk.try_into().unwrap());
                    (bytes.chunks_exact(8).map(word).collect(), length)
                })
                .collect(),
        )
    }

    fn addresses(&mut self) -> Vec<u64> {
        self.0.iter_mut().map(|(words, _)| words.as_mut_ptr().expose_provenance() as u64).collect()
    }

    fn bytes(&self, index: usize) -> Vec<u8> {
        let (words, length) = &self.0[index];
        let mut bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
        bytes.truncate(*length);
        bytes
    }
}

/// Runs the steps in two ranges, as a caller does that has work of its own between them.
fn run_in_two(plan: *mut Plan, addresses: &[u64], steps: usize) -> i32 {
    for range in [0..steps / 2, steps / 2..steps] {
        // SAFETY: a live plan and as many addresses as it says.
        let code = unsafe {
            pn_plan_run(plan, addresses.as_ptr(), addresses.len(), range.start, range.end, 0)
        };
        if code != 0 {
            return code;
        }
    }
    0
}

#[test]
fn version_is_two() {
    assert_eq!(pn_version(), 2);
}

#[test]
fn every_kernel_file_gives_what_it_gives_in_process() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../passnet-kernel/tests/kernels");
    let mut compared = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        if !name.ends_with(".py") {
            continue;
        }
        let fixture = fixture(&name);
        let prepared = fixture.prepare().unwrap();
        let expected = fixture.run(&prepared, RunOptions::default()).unwrap();
        let plan = make(&request(&prepared));
        assert!(!plan.is_null(), "{name}: {}", last_error());
        let mut buffers = Buffers::of(&fixture);
        let code = run_in_two(plan, &buffers.addresses(), fixture.plan.steps.len());
        assert_eq!(code, 0, "{name}: {}", last_error());
        // SAFETY: made above, freed once.
        unsafe { pn_plan_free(plan) };
        for (view, expected) in fixture.plan.returns.iter().zip(&expected.data) {
            assert!(gather(view, &buffers.bytes(view.buffer)) == *expected, "{name}");
            compared += 1;
        }
    }
    assert!(compared > 100, "only {compared} outputs");
}

/// Infinities survive the way through JSON, which has no number for them.
#[test]
fn infinite_fills_and_arguments_survive() {
    let source = "\
# wrapper: run
# input: x float32 [8] normal
import torch
import triton
import triton.language as tl

@triton.jit
def largest(x_ptr, out_ptr, n, low, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=low)
    tl.store(out_ptr + i, tl.maximum(tl.load(out_ptr + i, mask=i < n), x), mask=i < n)

def run(x):
    out = torch.full((8,), float('-inf'), device=x.device)
    largest[(1,)](x, out, 8, float('-inf'), BLOCK=8)
    return out
";
    let fixture = Fixture::new(Source::new("largest.py", source)).unwrap();
    let plan = make(&request(&fixture.prepare().unwrap()));
    assert!(!plan.is_null(), "{}", last_error());
    let mut buffers = Buffers::of(&fixture);
    assert_eq!(run_in_two(plan, &buffers.addresses(), 1), 0, "{}", last_error());
    let out = fixture.plan.returns[0].buffer;
    assert_eq!(buffers.bytes(out), fixture.header.data(0));
    // SAFETY: made above, freed once.
    unsafe { pn_plan_free(plan) };
}

#[test]
fn bad_json_is_refused() {
    for (json, reason) in [
        ("", "EOF"),
        ("{", "EOF"),
        ("[1, 2]", "invalid"),
        ("{\"plan\": 3, \"kernels\": []}", "invalid type"),
        ("\u{1F600}", "expected value"),
    ] {
        assert!(make(json).is_null());
        let error = last_error();
        assert!(error.contains(reason), "{json}: {error}");
    }
    let prepared = fixture("relu.py").prepare().unwrap();
    for (wrong, reason) in [
        (json!({ "plan": prepared.plan(), "kernels": [] }), "more launches than kernels"),
        (json!({ "plan": prepared.plan(), "kernels": ["kernel k() {"] }), "expected"),
        (
            json!({ "plan": prepared.plan(), "kernels": ["kernel k() {}", "kernel k() {}"] }),
            "no launch",
        ),
    ] {
        assert!(make(&wrong.to_string()).is_null());
        let error = last_error();
        assert!(error.contains(reason), "{error}");
    }
    let mut plan = prepared.plan().clone();
    plan.version += 1;
    let newer = json!({ "plan": plan, "kernels": [""] }).to_string();
    assert!(make(&newer).is_null());
    assert!(last_error().contains("version"), "{}", last_error());
}

#[test]
fn wrong_counts_steps_and_pointers_are_refused() {
    let fixture = fixture("relu.py");
    let plan = make(&request(&fixture.prepare().unwrap()));
    let mut buffers = Buffers::of(&fixture);
    let addresses = buffers.addresses();
    let count = addresses.len();
    let run = |addresses: &[u64], first, last| {
        // SAFETY: a live plan; the addresses are checked before they are used.
        unsafe { pn_plan_run(plan, addresses.as_ptr(), addresses.len(), first, last, 0) }
    };
    let refused = |code: i32, reason: &str| {
        let error = last_error();
        assert!(code == BAD_CALL && error.contains(reason), "{code}: {error}");
    };
    refused(run(&addresses[1..], 0, 1), "buffer addresses");
    refused(run(&[], 0, 1), "buffer addresses");
    refused(run(&addresses, 0, 2), "steps");
    refused(run(&addresses, 1, 0), "steps");
    refused(run(&addresses, usize::MAX, usize::MAX), "steps");
    let mut null = addresses.clone();
    null[0] = 0;
    refused(run(&null, 0, 1), "no usable address");
    let mut odd = addresses.clone();
    odd[0] += 1;
    refused(run(&odd, 0, 1), "does not fit its type");
    let shared = vec![addresses[0]; count];
    refused(run(&shared, 0, 1), "shares memory");
    // SAFETY: null is checked.
    refused(unsafe { pn_plan_run(plan, std::ptr::null(), count, 0, 1, 0) }, "null");
    // SAFETY: null is checked.
    refused(unsafe { pn_plan_run(std::ptr::null(), addresses.as_ptr(), count, 0, 1, 0) }, "null");
    // SAFETY: null is checked, for plans and texts alike.
    unsafe {
        assert!(pn_plan_cpu(std::ptr::null(), 10).is_null());
        assert!(pn_plan_cpu([0u8].as_ptr(), usize::MAX).is_null());
        pn_plan_free(std::ptr::null_mut());
        assert!(pn_error(std::ptr::null_mut(), 0) > 0);
    }
    assert_eq!(run(&addresses, 0, 1), 0, "{}", last_error());
    // SAFETY: made above, freed once.
    unsafe { pn_plan_free(plan) };
}

#[test]
fn a_fault_of_a_kernel_is_reported_with_its_line() {
    let source = std::fs::read_to_string(
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../passnet-kernel/tests/kernels/relu.py"),
    )
    .unwrap();
    let fixture = Fixture::new(Source::new("relu.py", source)).unwrap();
    let mut prepared = fixture.plan.clone();
    // One program more than there is data, with the mask's bound raised to let it through.
    for step in &mut prepared.steps {
        if let Step::Launch(launch) = step {
            launch.grid[0] += 1000;
            for arg in &mut launch.args {
                if let passnet_kernel::plan::ArgValue::Int { value, .. } = &mut arg.value {
                    *value += 1_000_000;
                }
            }
        }
    }
    let kernels: Vec<String> =
        fixture.prepare().unwrap().functions().map(ToString::to_string).collect();
    let plan = make(&json!({ "plan": prepared, "kernels": kernels }).to_string());
    let mut buffers = Buffers::of(&fixture);
    assert_eq!(run_in_two(plan, &buffers.addresses(), 1), KERNEL_FAILED);
    let error = last_error();
    assert!(error.starts_with("relu.py:") && error.contains("reads element"), "{error}");
    // SAFETY: made above, freed once.
    unsafe { pn_plan_free(plan) };
}

/// Where there is a driver the plan is still refused: this thread has no context.
#[test]
fn without_cuda_the_reason_is_given() {
    let prepared = fixture("relu.py").prepare().unwrap();
    let json = json!({ "plan": prepared.plan(), "kernels": [] }).to_string();
    let cubins = [0u8; 64];
    // SAFETY: as long as they say.
    let plan = unsafe { pn_plan_cuda(json.as_ptr(), json.len(), cubins.as_ptr(), cubins.len()) };
    assert!(plan.is_null());
    assert!(last_error().contains("CUDA"), "{}", last_error());
}
