//! How fast is the candidate?

use super::case::{Case, copies};
use super::verification::first_difference;
use super::{EvaluateOptions, Evaluation, candidate_failure, eager_failure};
use crate::stats::median;
use crate::timing::{self, CallTime, Side, Timings};
use crate::verdict::{Verdict, VerdictKind};
use passnet_engine::native::TensorError;
use passnet_engine::{EngineError, Prepared, RunOptions, Staged, Value};
use std::time::Instant;

/// Times both sides and writes the result into the evaluation. Every call of the candidate must give, bit by bit,
/// the outputs that were verified.
pub(super) fn time(
    case: &Case,
    verified: Vec<Vec<Value>>,
    options: &EvaluateOptions,
    evaluation: &mut Evaluation,
) -> Result<(), Box<Verdict>> {
    let started = Instant::now();
    let mut eager = Runner::new(case, &*case.eager, eager_failure, Vec::new())?;
    let mut candidate = Runner::new(case, &*case.candidate, candidate_failure, verified)?;
    let mut plan = options.timing.clone();
    if candidate.staged.is_none() {
        // Verification has called both sides already, each call by itself: that much of the warm-up is done.
        let calls = case.calls();
        plan.warmup = plan.warmup.saturating_sub(calls.of_each_side());
        evaluation.measured_seconds = calls.seconds;
    }
    let timings = timing::race(&mut eager, &mut candidate, &plan)?;
    evaluation.measured_seconds += timings.measured;
    evaluation.interval = timing::interval(&timings);
    evaluation.judged.speedup = evaluation.interval.map(|interval| interval.ratio);
    evaluation.decision = evaluation.interval.map(|interval| interval.decide(options.noise_floor));
    evaluation.spent.around_calls = started.elapsed().as_secs_f64() - timings.measured;
    let milliseconds = |seconds: &[f64]| seconds.iter().map(|s| s * 1e3).collect();
    evaluation.eager_ms = milliseconds(&timings.eager);
    evaluation.candidate_ms = milliseconds(&timings.candidate);
    let median_ms = |seconds: &[f64]| median(seconds).map(|seconds| seconds * 1e3);
    evaluation.eager_device_ms = median_ms(&timings.eager_device);
    evaluation.candidate_device_ms = median_ms(&timings.candidate_device);
    Ok(())
}

/// Times eager against itself, in turns and one after the other.
pub(super) fn against_itself(
    case: &Case,
    options: &EvaluateOptions,
) -> Result<[Timings; 2], Box<Verdict>> {
    let side = || Runner::new(case, &*case.eager, eager_failure, Vec::new());
    let turns = timing::race(&mut side()?, &mut side()?, &options.timing)?;
    let alone = timing::one_after_the_other(&mut side()?, &mut side()?, &options.timing)?;
    Ok([turns, alone])
}

/// One side, called on the draws in turn.
struct Runner<'a> {
    case: &'a Case,
    side: &'a dyn Prepared,
    /// Where the engine computes elsewhere, it keeps the inputs and times the calls there.
    staged: Option<Box<dyn Staged + 'a>>,
    failure: fn(&EngineError) -> Box<Verdict>,
    options: RunOptions,
    /// What each draw must give; empty for the side that is not under test.
    verified: Vec<Vec<Value>>,
    draw: usize,
    inputs: Vec<Value>,
    outputs: Vec<Value>,
    /// The output of a staged call that is not the verified one.
    different: Option<usize>,
}

impl<'a> Runner<'a> {
    fn new(
        case: &'a Case,
        side: &'a dyn Prepared,
        failure: fn(&EngineError) -> Box<Verdict>,
        verified: Vec<Vec<Value>>,
    ) -> Result<Self, Box<Verdict>> {
        let options = case.run_options(false);
        let staged =
            side.stage(&case.draws, &verified, &options).map_err(|error| failure(&error))?;
        Ok(Runner {
            case,
            side,
            staged,
            failure,
            options,
            verified,
            draw: 0,
            inputs: Vec::new(),
            outputs: Vec::new(),
            different: None,
        })
    }
}

impl Side for Runner<'_> {
    type Error = Box<Verdict>;

    fn prepare(&mut self, call: usize) -> Result<(), Box<Verdict>> {
        self.draw = call % self.case.draws.len();
        if self.staged.is_some() {
            return Ok(());
        }
        let inputs = &self.case.draws[self.draw];
        self.inputs = match self.case.writes_inputs {
            true => copies(inputs).map_err(|error| exhausted(&error))?,
            false => inputs.clone(),
        };
        Ok(())
    }

    fn call(&mut self) -> Result<CallTime, Box<Verdict>> {
        if let Some(staged) = &mut self.staged {
            let called = staged.call(self.draw).map_err(|error| (self.failure)(&error))?;
            self.different = called.different_output;
            return Ok(CallTime { seconds: called.seconds, device: called.device_seconds });
        }
        let started = Instant::now();
        self.outputs =
            self.side.run(&self.inputs, &self.options).map_err(|error| (self.failure)(&error))?;
        Ok(CallTime { seconds: started.elapsed().as_secs_f64(), device: None })
    }

    fn finish(&mut self) -> Result<(), Box<Verdict>> {
        let outputs = std::mem::take(&mut self.outputs);
        let Some(verified) = self.verified.get(self.draw) else { return Ok(()) };
        let different = match self.staged.is_some() {
            true => self.different,
            false => first_difference(verified, &outputs)?,
        };
        match different {
            None => Ok(()),
            Some(output) => {
                let text = format!("output {output} of a timed call differs from the verified one");
                Err(Box::new(Verdict::new(VerdictKind::Unstable).because(text)))
            }
        }
    }
}

fn exhausted(error: &TensorError) -> Box<Verdict> {
    Box::new(Verdict::new(VerdictKind::ReferenceFail).because(error.to_string()))
}
