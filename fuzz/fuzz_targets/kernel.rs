//! Any pass file: its wrapper plans and its kernels run, or an error says where not. What is printed reads back equal,
//! the checked mode gives the results of the fast one, and threads change nothing.
//!
//! Seeds: `crates/passnet-kernel/tests/kernels` and `tests/checks`.
#![no_main]

use libfuzzer_sys::fuzz_target;
use passnet_graph::syntax::Source;
use passnet_kernel::check::check;
use passnet_kernel::exec::{PreparedPlan, RunOptions};
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
    run(&fixture, &prepared);
});

fn run(fixture: &Fixture, prepared: &PreparedPlan) {
    let options = |threads| RunOptions { threads, iterations: MAX_ITERATIONS, deadline: None };
    let Ok(one) = fixture.run(prepared, options(1)) else { return };
    let two = fixture.run(prepared, options(2)).expect("threads change nothing");
    assert_eq!(one.data, two.data);
    let mut buffers = fixture.buffers(prepared);
    let lent = buffers.iter_mut().map(Vec::as_mut_slice).collect();
    let wrapper = fixture.wrapper().expect("it was planned");
    check(&fixture.modules, &wrapper, &fixture.header.host_args(), prepared, lent);
    for (view, data) in one.views.iter().zip(&one.data) {
        let checked = passnet_kernel::exec::gather(view, &buffers[view.buffer]);
        assert_eq!(checked, *data, "the checked mode differs");
    }
}
