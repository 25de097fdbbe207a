//! A quick answer to what a run with bookkeeping looks for.
//!
//! Every run checks bounds. Where programs are proved independent there are no races either, and what is left is whether
//! memory is read before it is written and whether outputs have holes. Both show when the plan runs twice, on fresh memory
//! filled in opposite ways: a byte that comes out the same both times was written, and from nothing but defined data.

use crate::analysis::{Analysis, Touch, Written};
use crate::exec::{Memory, PreparedPlan, RunOptions};
use crate::ir::Function;
use crate::plan::{BufferSpec, Init, Launch, LaunchPlan, Step};

/// Whether a run with bookkeeping on these buffers would certainly observe nothing. If so they hold the plan's results,
/// otherwise they are ready for a run again, with zeros where the plan initialises nothing.
pub(super) fn observes_nothing(
    prepared: &PreparedPlan,
    functions: &[&Function],
    analyses: &[Analysis],
    buffers: &mut [&mut [u8]],
) -> bool {
    let plan = prepared.plan();
    let is_input = |index: usize| matches!(plan.buffers[index].init, Init::Input(_));
    let writes_input =
        prepared.written().iter().enumerate().any(|(i, &w)| w != Written::Never && is_input(i));
    if writes_input || !prepared.parallel().iter().all(|&independent| independent) {
        return false;
    }
    let Some(reads) = reads(plan, functions, analyses) else { return false };
    // Nothing writes inputs: both runs share them.
    let opposite = |(buffer, spec): (&&mut [u8], &BufferSpec)| match spec.init {
        Init::Input(_) => Vec::new(),
        Init::Uninitialized => buffer.iter().map(|byte| !byte).collect(),
        _ => buffer.to_vec(),
    };
    let mut second: Vec<Vec<u8>> = buffers.iter().zip(&plan.buffers).map(opposite).collect();
    let is_clean = ran_alike(prepared, &reads, buffers, &mut second);
    if !is_clean {
        for (buffer, spec) in buffers.iter_mut().zip(&plan.buffers) {
            if matches!(spec.init, Init::Uninitialized) {
                buffer.fill(0);
            }
        }
        prepared.initialize(buffers);
    }
    is_clean
}

/// Runs step by step in both memories, as long as what a step reads is the same in both.
fn ran_alike(
    prepared: &PreparedPlan,
    reads: &[Vec<usize>],
    first: &mut [&mut [u8]],
    second: &mut [Vec<u8>],
) -> bool {
    let plan = prepared.plan();
    let alike = |first: &[&mut [u8]], second: &[Vec<u8>], index: usize| {
        matches!(plan.buffers[index].init, Init::Input(_)) || *first[index] == *second[index]
    };
    for (step, reads) in reads.iter().enumerate() {
        if !reads.iter().all(|&buffer| alike(first, second, buffer)) {
            return false;
        }
        let run = |buffers: Vec<&mut [u8]>| {
            let memory = Memory::new(buffers);
            prepared.run_on(&memory, step..step + 1, RunOptions::default()).is_ok()
        };
        if !run(first.iter_mut().map(|buffer| &mut **buffer).collect()) {
            return false;
        }
        let pairs = first.iter_mut().zip(second.iter_mut()).enumerate();
        let lent = pairs.map(|(index, (a, b))| match plan.buffers[index].init {
            Init::Input(_) => &mut **a,
            _ => b.as_mut_slice(),
        });
        if !run(lent.collect()) {
            return false;
        }
    }
    plan.returns.iter().all(|view| alike(first, second, view.buffer))
}

/// The buffers that each step reads; nothing where a pointer cannot be traced.
fn reads(
    plan: &LaunchPlan,
    functions: &[&Function],
    analyses: &[Analysis],
) -> Option<Vec<Vec<usize>>> {
    let known: Vec<(&Launch, &Function, &Analysis)> = plan
        .launches()
        .zip(functions)
        .zip(analyses)
        .map(|((launch, function), analysis)| (launch, *function, analysis))
        .collect();
    let mut kernels = known.into_iter();
    let of_step = |step: &Step| match step {
        Step::Launch(_) => {
            let (launch, function, analysis) = kernels.next()?;
            let loads = analysis.touches.iter().filter(|touch| !touch.store || touch.atomic);
            let buffer = |touch: &Touch| {
                launch.view(&function.params[touch.param?].name).map(|view| view.buffer)
            };
            loads.map(buffer).collect()
        }
        Step::Copy { from, .. } => Some(vec![from.buffer]),
        Step::Fill { .. } => Some(Vec::new()),
    };
    plan.steps.iter().map(of_step).collect()
}
