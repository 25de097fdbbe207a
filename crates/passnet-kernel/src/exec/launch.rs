//! One kernel launch: its programs, spread over threads where that is safe.

use super::fault::{Fault, FaultKind};
use super::lower::{Bound, LowerError, lower};
use super::machine::Machine;
use super::memory::Memory;
#[cfg(all(target_arch = "x86_64", unix, feature = "machine-code"))]
use super::native::{self, Code};
use super::options::RunOptions;
use super::order::ProgramOrder;
use super::tape::Tape;
use super::track::Tracker;
use crate::ir::{Function, Loc};
use passnet_cpu::run_tasks;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

/// A kernel lowered for one launch.
#[derive(Debug)]
pub(crate) struct PreparedLaunch {
    tape: Tape,
    #[cfg(all(target_arch = "x86_64", unix, feature = "machine-code"))]
    code: Option<Code>,
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
        #[cfg(all(target_arch = "x86_64", unix, feature = "machine-code"))]
        let (tape, code) = native::compile(tape);
        let independent_order = independent_order.filter(|_| !tape.has_atomics);
        let order = independent_order.unwrap_or([0, 1, 2]);
        Ok(PreparedLaunch {
            tape,
            #[cfg(all(target_arch = "x86_64", unix, feature = "machine-code"))]
            code,
            grid,
            independent: independent_order.is_some(),
            order,
        })
    }

    pub(crate) fn is_parallel(&self) -> bool {
        self.independent
    }

    /// How many groups ran as machine code so far; nothing where there is none.
    pub(crate) fn machine_code_runs(&self) -> Option<u64> {
        #[cfg(all(target_arch = "x86_64", unix, feature = "machine-code"))]
        return self.code.as_ref().map(Code::runs);
        #[cfg(not(all(target_arch = "x86_64", unix, feature = "machine-code")))]
        None
    }

    #[cfg(all(test, target_arch = "x86_64", unix, feature = "machine-code"))]
    pub(crate) fn machine_code(&self) -> Option<&[u8]> {
        self.code.as_ref().map(Code::bytes)
    }

    fn machine<'t, 'm>(
        &'t self,
        memory: &'t Memory<'m>,
        tracker: Option<&'t mut Tracker>,
        options: RunOptions,
    ) -> Machine<'t, 'm> {
        let machine = Machine::new(&self.tape, memory, tracker, options);
        #[cfg(all(target_arch = "x86_64", unix, feature = "machine-code"))]
        let machine = machine.with_code(self.code.as_ref());
        machine
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

    /// Runs every program. The error is that of the failing program with the lowest number, whatever the threads do and in
    /// whichever order programs run; only a program that does not end may hide one.
    pub(crate) fn run(
        &self,
        memory: &Memory<'_>,
        options: RunOptions,
        order: ProgramOrder,
    ) -> Result<(), Box<Fault>> {
        let programs = self.programs();
        if !self.independent || options.threads <= 1 || programs < 2 * MIN_BATCH {
            let mut machine = self.machine(memory, None, options);
            let failure = self.run_some(&mut machine, 0..programs, options, order);
            machine.settle();
            return failure.map_or(Ok(()), |(_, fault)| Err(fault));
        }
        // Enough batches to balance, few enough that setting up a machine does not show. Programs that do not touch what
        // others write cannot tell one order from another: each thread keeps its share, for its caches hold it.
        let batch = programs.div_ceil(options.threads * 4).max(MIN_BATCH);
        let failures = Mutex::new(Vec::new());
        run_tasks(programs.div_ceil(batch), options.threads, &|task, _| {
            let mut machine = self.machine(memory, None, options);
            let own = task * batch..programs.min((task + 1) * batch);
            let failure = self.run_some(&mut machine, own, options, order);
            failures.lock().unwrap_or_else(PoisonError::into_inner).extend(failure);
            machine.settle();
        });
        let failures = failures.into_inner().unwrap_or_else(PoisonError::into_inner);
        match failures.into_iter().min_by_key(|(i, _)| *i) {
            Some((_, fault)) => Err(fault),
            None => Ok(()),
        }
    }

    /// Runs these programs; the failing one with the lowest number, if any fails.
    fn run_some(
        &self,
        machine: &mut Machine<'_, '_>,
        programs: Range<usize>,
        options: RunOptions,
        order: ProgramOrder,
    ) -> Option<(usize, Box<Fault>)> {
        let mut failure: Option<(usize, Box<Fault>)> = None;
        for i in order.of_programs(programs.len()) {
            let i = programs.start + i;
            if failure.as_ref().is_some_and(|(lowest, _)| *lowest < i) {
                continue;
            }
            let ran = self.in_time(i, options).and_then(|()| machine.run(self.program(i)));
            if let Err(fault) = ran {
                let is_over = matches!(fault.kind, FaultKind::EndlessLoop | FaultKind::Deadline);
                failure = Some((i, fault));
                if is_over {
                    break;
                }
            }
        }
        failure
    }

    /// Runs one program after another with bookkeeping.
    pub(crate) fn run_checked(
        &self,
        memory: &Memory<'_>,
        tracker: &mut Tracker,
        order: ProgramOrder,
    ) -> Result<(), Box<Fault>> {
        let options = RunOptions::default();
        let mut machine = self.machine(memory, Some(tracker), options);
        let failure = self.run_some(&mut machine, 0..self.programs(), options, order);
        failure.map_or(Ok(()), |(_, fault)| Err(fault))
    }
}
