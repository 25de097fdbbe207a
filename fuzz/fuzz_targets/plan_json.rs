//! Any bytes as the JSON of a plan with its kernels as tile IR: the C interface refuses it with a text or makes a plan,
//! and such a plan runs inside its buffers, with machine code as without.
//!
//! Seeds: `passnet kernel plan --json --ir` of each file of `crates/passnet-kernel/tests/kernels`, its `ir` called `kernels`;
//! words: `plan_json.dict`.
#![no_main]

mod guarded;

use guarded::Guarded;
use libfuzzer_sys::fuzz_target;
use passnet_kernel::exec::{PreparedPlan, RunOptions};
use passnet_kernel::ir;
use passnet_kernel::plan::{Init, LaunchPlan, Step};
use passnet_runner::{OUR_BUG, Plan, pn_error, pn_plan_cpu, pn_plan_free, pn_plan_run};

/// Bytes of all buffers: the aim is many small runs.
const MAX_BYTES: u64 = 1 << 18;
const MAX_PROGRAMS: u64 = 64;
const MAX_ITERATIONS: u64 = 300;

#[derive(serde::Deserialize)]
struct Request {
    plan: LaunchPlan,
    kernels: Vec<String>,
}

fuzz_target!(|json: &[u8]| {
    // SAFETY: a slice is as long as it says.
    let plan = unsafe { pn_plan_cpu(json.as_ptr(), json.len()) };
    if plan.is_null() {
        let text = last_error();
        // A panic that the interface would catch has ended the process already, by the hook that libFuzzer sets.
        assert!(!text.is_empty(), "refused without a text");
        return;
    }
    let plan = Handle(plan);
    let Request { plan: read, kernels } = serde_json::from_slice(json).expect("it was read");
    let bytes = read.buffers.iter().fold(0u64, |n, b| n.saturating_add(b.bytes()));
    let programs = read.steps.iter().fold(0u64, |n, step| match step {
        Step::Launch(launch) => n.saturating_add(launch.programs()),
        _ => n,
    });
    if bytes > MAX_BYTES || programs > MAX_PROGRAMS {
        return;
    }
    let functions = kernels.iter().map(|text| ir::parse::parse("kernel.ir", text));
    let functions = functions.collect::<Result<Vec<_>, _>>().expect("it was parsed");
    let prepared = PreparedPlan::from_functions(read, functions).expect("it was prepared");
    let run = |interpret, order| {
        let (iterations, order) = (MAX_ITERATIONS, Some(order));
        run(&prepared, RunOptions { threads: 1, iterations, deadline: None, interpret, order })
    };
    let (compiled, interpreted) = (run(false, 1), run(true, 1));
    assert!(compiled == interpreted, "machine code changes the outcome");
    // The interface draws an order of its own: a plan that races gives other results there. And it has no limit of
    // iterations to set: it runs what is known to end.
    let races = (2..6).any(|order| run(false, order) != compiled);
    if let Ok(expected) = compiled
        && !races
    {
        assert!(through_the_interface(&plan, &prepared) == expected, "the interface differs");
    }
});

struct Handle(*mut Plan);

impl Drop for Handle {
    fn drop(&mut self) {
        // SAFETY: made by `pn_plan_cpu`, freed once.
        unsafe { pn_plan_free(self.0) };
    }
}

fn last_error() -> String {
    let mut text = vec![0u8; 1 << 16];
    // SAFETY: as long as it says.
    let length = unsafe { pn_error(text.as_mut_ptr(), text.len()) };
    text.truncate(length);
    String::from_utf8_lossy(&text).into_owned()
}

fn buffers(prepared: &PreparedPlan) -> Vec<Guarded> {
    let specs = prepared.plan().buffers.iter();
    specs
        .enumerate()
        .map(|(index, spec)| {
            let byte = if matches!(spec.init, Init::Input(_)) { 0x3c } else { 0xcb };
            let mut content = vec![byte; spec.bytes() as usize];
            prepared.initialize_one(index, &mut content);
            Guarded::new(&content, spec.dtype.size())
        })
        .collect()
}

fn run(prepared: &PreparedPlan, options: RunOptions) -> Result<Vec<Vec<u8>>, String> {
    let mut buffers = buffers(prepared);
    let lent: Vec<_> = buffers.iter_mut().map(Guarded::lent).collect();
    // SAFETY: each buffer is its own pages, which live until the end of this function.
    let ran = unsafe { prepared.run_lent(&lent, options) };
    let content = buffers.iter().map(|buffer| buffer.content().to_vec()).collect();
    ran.map_err(|error| error.to_string())?;
    Ok(content)
}

fn through_the_interface(plan: &Handle, prepared: &PreparedPlan) -> Vec<Vec<u8>> {
    let mut buffers = buffers(prepared);
    let addresses: Vec<u64> =
        buffers.iter_mut().map(|buffer| buffer.lent().start.expose_provenance() as u64).collect();
    let steps = prepared.plan().steps.len();
    // SAFETY: a live plan and as many addresses as it has buffers, each of which is its own pages.
    let code = unsafe { pn_plan_run(plan.0, addresses.as_ptr(), addresses.len(), 0, steps, 0) };
    assert!(code == 0 && code != OUR_BUG, "{}", last_error());
    buffers.iter().map(|buffer| buffer.content().to_vec()).collect()
}
