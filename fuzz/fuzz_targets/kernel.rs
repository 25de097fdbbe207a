//! Any pass file: its wrapper plans and its kernels run, or an error says where not. What is printed reads back equal;
//! machine code, interpreter, several threads and the checked mode give the same bits and the same faults, and nothing
//! touches memory outside the buffers.
//!
//! Seeds: `crates/passnet-kernel/tests/kernels` and `tests/checks`; words: `kernel.dict`.
#![no_main]

mod guarded;

use guarded::Guarded;
use libfuzzer_sys::fuzz_target;
use passnet_graph::syntax::Source;
use passnet_kernel::check::check_in_order;
use passnet_kernel::exec::{FaultKind, PreparedPlan, RunError, RunOptions, gather};
use passnet_kernel::fixture::{Fixture, Header, Input};
use passnet_kernel::ir;
use passnet_kernel::plan::Step;

/// Bytes of all buffers: the aim is many small runs.
const MAX_BYTES: u64 = 1 << 18;
const MAX_PROGRAMS: u64 = 64;
const MAX_ITERATIONS: u64 = 300;

fuzz_target!(|text: &str| {
    let source = Source::new("pass.py", text);
    let Ok(header) = Header::parse(&source) else { return };
    let large = header.inputs.iter().any(|input| match input {
        Input::Tensor { spec, .. } => spec.storage_elements().is_none_or(|n| n > MAX_BYTES),
        Input::Value(_) => false,
    });
    if large {
        return;
    }
    let Ok(fixture) = Fixture::new(source) else { return };
    let bytes = fixture.plan.buffers.iter().fold(0u64, |n, b| n.saturating_add(b.bytes()));
    let programs = fixture.plan.steps.iter().fold(0u64, |n, step| match step {
        Step::Launch(launch) => n.saturating_add(launch.programs()),
        _ => n,
    });
    if bytes > MAX_BYTES || programs > MAX_PROGRAMS {
        return;
    }
    let Ok(prepared) = fixture.prepare() else { return };
    for function in prepared.functions() {
        let printed = function.to_string();
        let again = ir::parse::parse("printed.ir", &printed).expect(&printed);
        assert!(*function == again, "{printed}");
    }
    compare(&fixture, &prepared);
});

/// One order of programs for all runs: what races gives other results in another one.
const ORDER: Option<u64> = Some(1);

/// Packed results, or what stopped the run.
type Outcome = Result<Vec<Vec<u8>>, RunError>;

fn run(fixture: &Fixture, prepared: &PreparedPlan, threads: usize, interpret: bool) -> Outcome {
    let iterations = MAX_ITERATIONS;
    let options = RunOptions { threads, iterations, deadline: None, interpret, order: ORDER };
    let content = fixture.buffers(prepared);
    let specs = fixture.plan.buffers.iter();
    let mut buffers: Vec<Guarded> = content
        .iter()
        .zip(specs)
        .map(|(content, spec)| Guarded::new(content, spec.dtype.size()))
        .collect();
    let lent: Vec<_> = buffers.iter_mut().map(Guarded::lent).collect();
    // SAFETY: each buffer is its own pages, which live until the end of this function.
    let ran = unsafe { prepared.run_lent(&lent, options) };
    let buffers: Vec<&[u8]> = buffers.iter().map(Guarded::content).collect();
    ran?;
    Ok(fixture.plan.returns.iter().map(|view| gather(view, buffers[view.buffer])).collect())
}

fn same(left: &Outcome, right: &Outcome, what: &str) {
    match (left, right) {
        (Ok(left), Ok(right)) => assert!(left == right, "{what} changes the results"),
        (Err(left), Err(right)) => {
            assert_eq!(left.fault, right.fault, "{what} changes the fault");
        }
        (Ok(_), Err(fault)) | (Err(fault), Ok(_)) => panic!("{what} changes the outcome: {fault}"),
    }
}

fn compare(fixture: &Fixture, prepared: &PreparedPlan) {
    let interpreted = run(fixture, prepared, 1, true);
    let compiled = run(fixture, prepared, 1, false);
    same(&interpreted, &compiled, "machine code");
    let threaded = run(fixture, prepared, 2, false);
    // A program that does not end hides faults of those that come after it in its own thread.
    let is_endless = |outcome: &Outcome| {
        outcome.as_ref().is_err_and(|error| error.fault.kind == FaultKind::EndlessLoop)
    };
    match is_endless(&compiled) || is_endless(&threaded) {
        true => assert!(threaded.is_err(), "a second thread ends what does not end"),
        false => same(&compiled, &threaded, "a second thread"),
    }
    let Ok(expected) = interpreted else { return };
    let mut buffers = fixture.buffers(prepared);
    let lent = buffers.iter_mut().map(Vec::as_mut_slice).collect();
    let wrapper = fixture.wrapper().expect("it was planned");
    let args = fixture.header.host_args();
    // Where something is found, undefined bytes may be others in every run.
    if !check_in_order(&fixture.modules, &wrapper, &args, prepared, lent, ORDER).is_empty() {
        return;
    }
    for (view, expected) in fixture.plan.returns.iter().zip(&expected) {
        let checked = gather(view, &buffers[view.buffer]);
        assert!(checked == *expected, "the checked mode changes the results");
    }
}
