//! One kernel launch: its programs, spread over threads where that is safe.

use super::fault::{Fault, FaultKind};
use super::lower::{Bound, LowerError, lower};
use super::memory::Memory;
use super::plan_run::RunOptions;
use super::run::Machine;
use super::tape::Tape;
use super::team::run_tasks;
use super::track::Tracker;
use crate::ir::{Function, Loc};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

/// A kernel lowered for one launch.
#[derive(Debug)]
pub(crate) struct PreparedLaunch {
    tape: Tape,
    grid: [u32; 3],
    /// Whether programs provably touch no byte that another writes.
    independent: bool,
    /// The axes of the grid, the one that changes fastest first.
    order: [usize; 3],
}

/// Programs a thread takes at a time, at least.
const MIN_BATCH: usize = 4;
/// Programs between two looks at the clock.
const CLOCK_PERIOD: usize = 16;

impl PreparedLaunch {
    pub(crate) fn new(
        f: &Function,
        bounds: &[Bound],
        grid: [u32; 3],
        independent_order: Option<[usize; 3]>,
    ) -> Result<PreparedLaunch, LowerError> {
        let tape = lower(f, bounds, grid)?;
        let independent_order = independent_order.filter(|_| !tape.has_atomics);
        let order = independent_order.unwrap_or([0, 1, 2]);
        Ok(PreparedLaunch { tape, grid, independent: independent_order.is_some(), order })
    }

    pub(crate) fn is_parallel(&self) -> bool {
        self.independent
    }

    fn programs(&self) -> usize {
        self.grid.iter().map(|&g| g as usize).product()
    }

    fn program(&self, index: usize) -> [u32; 3] {
        let mut program = [0; 3];
        let mut rest = index;
        for axis in self.order {
            let size = self.grid[axis] as usize;
            program[axis] = (rest % size) as u32;
            rest /= size;
        }
        program
    }

    /// Looks at the clock, but not for every program: many are shorter than the look.
    fn in_time(&self, index: usize, options: RunOptions) -> Result<(), Box<Fault>> {
        let over = |deadline| index.is_multiple_of(CLOCK_PERIOD) && Instant::now() > deadline;
        if options.deadline.is_some_and(over) {
            let program = self.program(index);
            return Err(Box::new(Fault {
                kind: FaultKind::Deadline,
                loc: Loc::default(),
                program,
            }));
        }
        Ok(())
    }

    /// Runs every program. The error is that of the first failing program, whatever the threads do.
    pub(crate) fn run(&self, memory: &Memory<'_>, options: RunOptions) -> Result<(), Box<Fault>> {
        let programs = self.programs();
        if !self.independent || options.threads <= 1 || programs < 2 * MIN_BATCH {
            let mut machine = Machine::new(&self.tape, memory, None, options);
            let ran = (0..programs).try_for_each(|i| {
                self.in_time(i, options)?;
                machine.run(self.program(i))
            });
            machine.settle();
            return ran;
        }
        // Enough batches to balance, few enough that setting up a machine does not show.
        let batch = programs.div_ceil(options.threads * 4).max(MIN_BATCH);
        let failures = Mutex::new(Vec::new());
        run_tasks(programs.div_ceil(batch), options.threads, &|task, _| {
            let mut machine = Machine::new(&self.tape, memory, None, options);
            for i in task * batch..programs.min((task + 1) * batch) {
                let ran = self.in_time(i, options).and_then(|()| machine.run(self.program(i)));
                if let Err(fault) = ran {
                    failures.lock().unwrap_or_else(PoisonError::into_inner).push((i, fault));
                    break;
                }
            }
            machine.settle();
        });
        let failures = failures.into_inner().unwrap_or_else(PoisonError::into_inner);
        match failures.into_iter().min_by_key(|(i, _)| *i) {
            Some((_, fault)) => Err(fault),
            None => Ok(()),
        }
    }

    /// Runs one program after another with bookkeeping.
    pub(crate) fn run_checked(
        &self,
        memory: &Memory<'_>,
        tracker: &mut Tracker,
        lens: &[usize],
    ) -> Result<(), Box<Fault>> {
        tracker.begin(self.grid, lens);
        let mut machine = Machine::new(&self.tape, memory, Some(tracker), RunOptions::default());
        (0..self.programs()).try_for_each(|i| machine.run(self.program(i)))
    }
}
