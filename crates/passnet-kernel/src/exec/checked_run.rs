//! A run with bookkeeping: what was read before it was written, what raced, which outputs have holes.

use super::memory::Memory;
use super::order::ProgramOrder;
use super::plan_run::{PreparedPlan, RunError, run_error};
use super::track::{BufferState, Observation, Tracker};
use super::transfer::{copy, fill_view, for_runs};
use crate::analysis::stores;
use crate::plan::{Init, Step, View};

/// What a checked run saw.
#[derive(Debug, Default)]
pub(crate) struct CheckedRun {
    /// Step and observation.
    pub(crate) observations: Vec<(usize, Observation)>,
    /// For each returned view, the first element nothing wrote.
    pub(crate) holes: Vec<Option<i64>>,
}

impl PreparedPlan {
    /// Programs run in the order of their numbers unless a secret says otherwise; what races is found in any order.
    pub(crate) fn run_checked(
        &self,
        buffers: Vec<&mut [u8]>,
        order: Option<u64>,
    ) -> (CheckedRun, Option<RunError>) {
        let order = order.map_or(ProgramOrder::NATURAL, ProgramOrder::of);
        let lens: Vec<usize> = buffers.iter().map(|b| b.len()).collect();
        let memory = Memory::new(buffers);
        let mut tracker = Tracker::default();
        for (spec, len) in self.plan.buffers.iter().zip(&lens) {
            let defined = !matches!(spec.init, Init::Uninitialized);
            tracker.buffers.push(BufferState::new(*len, spec.dtype.size(), defined));
        }
        let mut checked = CheckedRun::default();
        for (index, (step, prepared)) in self.plan.steps.iter().zip(&self.steps).enumerate() {
            match (step, &prepared.launch) {
                (Step::Launch(launch), Some((kernel, function))) => {
                    let stored = stores(launch, function);
                    tracker.begin(launch.grid, &lens, stored.into_iter().map(|(buffer, _)| buffer));
                    let result = kernel.run_checked(&memory, &mut tracker, order);
                    checked.observations.extend(tracker.observations.drain(..).map(|o| (index, o)));
                    if let Err(fault) = result {
                        return (checked, Some(run_error(launch, function, *fault)));
                    }
                }
                (Step::Copy { from, to, .. }, _) => {
                    copy(&memory, from, to);
                    copy_defined(&mut tracker, from, to);
                }
                (Step::Fill { view, value, .. }, _) => {
                    fill_view(&memory, view, value);
                    define(&mut tracker, view);
                }
                (Step::Launch(_), None) => {}
            }
        }
        for view in &self.plan.returns {
            checked.holes.push(first_hole(&tracker, view));
        }
        (checked, None)
    }
}

fn define(tracker: &mut Tracker, view: &View) {
    if let Some(state) = tracker.buffers.get_mut(view.buffer) {
        let mut define = |start: i64, length: usize| {
            state.define_range(start as usize, start as usize + length);
        };
        for_runs(view, |run| match run.is_packed() {
            true => define(run.start, run.elements * run.size),
            false => run.addresses().for_each(|address| define(address, run.size)),
        });
    }
}

/// What is copied from undefined data is as undefined as they are.
fn copy_defined(tracker: &mut Tracker, from: &View, to: &View) {
    let mut defined = Vec::new();
    if let Some(state) = tracker.buffers.get(from.buffer) {
        for_runs(from, |run| {
            let is_defined = |address: i64| {
                state.first_undefined(address as usize, address as usize + run.size).is_none()
            };
            defined.extend(run.addresses().map(is_defined));
        });
    }
    let mut defined = defined.into_iter();
    if let Some(state) = tracker.buffers.get_mut(to.buffer) {
        for_runs(to, |run| {
            for (address, is_defined) in run.addresses().zip(&mut defined) {
                let (start, end) = (address as usize, address as usize + run.size);
                match is_defined {
                    true => state.define_range(start, end),
                    false => state.forget_range(start, end),
                }
            }
        });
    }
}

/// The first element of a view that holds no defined data.
fn first_hole(tracker: &Tracker, view: &View) -> Option<i64> {
    let state = tracker.buffers.get(view.buffer)?;
    let mut hole = None;
    let mut before = 0;
    for_runs(view, |run| {
        let undefined = |address: i64| {
            let start = address as usize;
            state.first_undefined(start, start + run.size).is_some()
        };
        let end = run.start + run.reach();
        if hole.is_none() && state.first_undefined(run.start as usize, end as usize).is_some() {
            hole = run.addresses().position(undefined).map(|at| (before + at) as i64);
        }
        before += run.elements;
    });
    hole
}
