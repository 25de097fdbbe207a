//! How fast is the candidate?

use super::case::{Case, copies};
use super::verification::first_difference;
use super::{EvaluateOptions, Evaluation, candidate_failure, eager_failure};
use crate::timing::{self, Side, Timings};
use crate::verdict::{Verdict, VerdictKind};
use passnet_engine::native::TensorError;
use passnet_engine::{EngineError, Prepared, RunOptions, Value};

/// Times both sides and writes the result into the evaluation. Every call of the candidate must give, bit by bit,
/// the outputs that were verified.
pub(super) fn time(
    case: &Case,
    verified: Vec<Vec<Value>>,
    options: &EvaluateOptions,
    evaluation: &mut Evaluation,
) -> Result<(), Box<Verdict>> {
    let mut eager = Runner::new(case, &*case.eager, eager_failure, Vec::new());
    let mut candidate = Runner::new(case, &*case.candidate, candidate_failure, verified);
    let timings = timing::race(&mut eager, &mut candidate, &options.timing)?;
    evaluation.measured_seconds = timings.measured;
    evaluation.interval = timing::interval(&timings);
    evaluation.judged.speedup = evaluation.interval.map(|interval| interval.ratio);
    evaluation.decision = evaluation.interval.map(|interval| interval.decide(options.noise_floor));
    let milliseconds = |seconds: &[f64]| seconds.iter().map(|s| s * 1e3).collect();
    evaluation.eager_ms = milliseconds(&timings.eager);
    evaluation.candidate_ms = milliseconds(&timings.candidate);
    Ok(())
}

/// Times eager against itself, in turns and one after the other.
pub(super) fn against_itself(
    case: &Case,
    options: &EvaluateOptions,
) -> Result<[Timings; 2], Box<Verdict>> {
    let side = || Runner::new(case, &*case.eager, eager_failure, Vec::new());
    let turns = timing::race(&mut side(), &mut side(), &options.timing)?;
    let alone = timing::one_after_the_other(&mut side(), &mut side(), &options.timing)?;
    Ok([turns, alone])
}

/// One side, called on the draws in turn.
struct Runner<'a> {
    case: &'a Case,
    side: &'a dyn Prepared,
    failure: fn(&EngineError) -> Box<Verdict>,
    options: RunOptions,
    /// What each draw must give; empty for the side that is not under test.
    verified: Vec<Vec<Value>>,
    draw: usize,
    inputs: Vec<Value>,
    outputs: Vec<Value>,
}

impl<'a> Runner<'a> {
    fn new(
        case: &'a Case,
        side: &'a dyn Prepared,
        failure: fn(&EngineError) -> Box<Verdict>,
        verified: Vec<Vec<Value>>,
    ) -> Self {
        Runner {
            case,
            side,
            failure,
            options: case.run_options(false),
            verified,
            draw: 0,
            inputs: Vec::new(),
            outputs: Vec::new(),
        }
    }
}

impl Side for Runner<'_> {
    type Error = Box<Verdict>;

    fn prepare(&mut self, call: usize) -> Result<(), Box<Verdict>> {
        self.draw = call % self.case.draws.len();
        let inputs = &self.case.draws[self.draw];
        self.inputs = match self.case.writes_inputs {
            true => copies(inputs).map_err(|error| exhausted(&error))?,
            false => inputs.clone(),
        };
        Ok(())
    }

    fn call(&mut self) -> Result<(), Box<Verdict>> {
        self.outputs =
            self.side.run(&self.inputs, &self.options).map_err(|error| (self.failure)(&error))?;
        Ok(())
    }

    fn finish(&mut self) -> Result<(), Box<Verdict>> {
        let outputs = std::mem::take(&mut self.outputs);
        let Some(verified) = self.verified.get(self.draw) else { return Ok(()) };
        match first_difference(verified, &outputs)? {
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
