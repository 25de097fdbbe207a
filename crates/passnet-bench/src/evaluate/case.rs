//! A graph and its rewritten form, prepared, with the inputs both will see.

use super::failure::{candidate_failure, eager_failure, harness_failure};
use super::named::Named;
use super::options::EvaluateOptions;
use super::oracle::{self, Move, Moves};
use super::tensors::Flat;
use crate::secret::Secret;
use crate::subject::Subject;
use crate::verdict::{Verdict, VerdictKind};
use passnet_cpu::without_helpers;
use passnet_engine::dump::output_tensors;
use passnet_engine::native::folder::{InputDrawer, InputError};
use passnet_engine::native::{Result as TensorResult, Tensor, Wrappers};
use passnet_engine::{Engine, EngineError, Precision, Prepared, RunOptions, Value};
use passnet_graph::graph::effects::Effects;
use passnet_graph::{DType, Graph, GraphFiles};
use rayon::prelude::*;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The reference seeds its generator with this before every call.
const CALL_SEED: u64 = 1024;

/// Seconds of a call that is short.
const SHORT_CALL: f64 = 2e-3;

/// Both sides of an evaluation.
#[derive(Debug)]
pub(super) struct Case {
    pub(super) sides: Sides,
    /// One set of inputs per draw.
    pub(super) draws: Vec<Vec<Value>>,
    pub(super) drawer: InputDrawer,
    pub(super) secret: Secret,
    memory_limit: usize,
    call_seconds: f64,
    pub(super) thorough: bool,
    calls: Mutex<Calls>,
}

/// Calls of both sides before timing begins. They warm up like any others.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Calls {
    eager: usize,
    candidate: usize,
    pub(super) seconds: f64,
}

impl Calls {
    /// Calls that each side has had.
    pub(super) fn of_each_side(self) -> usize {
        self.eager.min(self.candidate)
    }
}

/// What one run gave.
#[derive(Debug)]
pub(super) struct Run {
    pub(super) outputs: Vec<Value>,
    /// The inputs as the run left them.
    pub(super) inputs: Vec<Value>,
}

impl Run {
    /// The tensors of the outputs and, where the graph writes into its inputs, those too.
    pub(super) fn tensors(&self, with_inputs: bool) -> TensorResult<Vec<Tensor>> {
        let mut tensors = output_tensors(&self.outputs)?;
        if with_inputs {
            tensors.extend(output_tensors(&self.inputs)?);
        }
        Ok(tensors)
    }
}

/// Both sides and the yardstick, prepared.
#[derive(Debug)]
pub(super) struct Sides {
    pub(super) eager: Box<dyn Prepared>,
    pub(super) candidate: Box<dyn Prepared>,
    /// The graph in float64; `None` where the engine cannot.
    oracle: Option<Box<dyn Prepared>>,
    /// What the candidate is.
    pub(super) subject: Subject,
    /// Whether the graph writes into its inputs, so that every run needs copies.
    pub(super) writes_inputs: bool,
    /// Numbers that stand in the graph.
    pub(super) named: Named,
}

impl Sides {
    pub(super) fn prepare(
        engine: &dyn Engine,
        graph: &Graph,
        subject: Subject<(&Graph, &Wrappers)>,
    ) -> Result<Sides, Box<Verdict>> {
        let none = Wrappers::default();
        let prepare_eager =
            || engine.prepare(graph, Precision::AsWritten, &none).map_err(eager_failure);
        let eager = prepare_eager()?;
        let candidate = match subject {
            Subject::Passes((rewritten, wrappers)) => engine
                .prepare(rewritten, Precision::AsWritten, wrappers)
                .map_err(candidate_failure)?,
            Subject::Compiled(compiler) => {
                engine.prepare_compiled(graph, compiler).map_err(candidate_failure)?
            }
            Subject::Eager => prepare_eager()?,
        };
        Ok(Sides {
            eager,
            candidate,
            oracle: engine.prepare(graph, Precision::Double, &none).ok(),
            subject: subject.kind(),
            writes_inputs: Effects::of(graph).write_inputs(graph),
            named: Named::of(graph),
        })
    }
}

impl Case {
    pub(super) fn new(
        sides: Sides,
        drawn: Drawn,
        options: &EvaluateOptions,
        secret: Secret,
    ) -> Case {
        Case {
            sides,
            draws: drawn.draws,
            drawer: drawn.drawer,
            secret,
            memory_limit: options.memory_limit,
            call_seconds: options.call_seconds.clamp(0.0, 1e6),
            thorough: options.thorough,
            calls: Mutex::default(),
        }
    }

    /// The type of the first float input.
    pub(super) fn dtype(&self) -> String {
        let mut tensors = self.draws[0].iter().filter_map(Value::as_tensor).map(|t| t.dtype());
        tensors.find(|dtype| dtype.is_float()).unwrap_or(DType::Int64).name().to_string()
    }

    pub(super) fn run_options(&self) -> RunOptions {
        RunOptions {
            seed: CALL_SEED,
            memory_limit: self.memory_limit,
            time_limit: Some(Duration::from_secs_f64(self.call_seconds)),
        }
    }

    /// Inputs for a run that only eager's own effects can change: shared where the graph writes none of them.
    pub(super) fn inputs_for_eager(&self, inputs: &[Value]) -> Result<Vec<Value>, Box<Verdict>> {
        match self.sides.writes_inputs {
            true => copies(inputs).map_err(harness_failure),
            false => Ok(inputs.to_vec()),
        }
    }

    /// Runs eager on inputs that nothing else uses.
    pub(super) fn run_eager(&self, fresh: Vec<Value>) -> Result<Run, Box<Verdict>> {
        let started = Instant::now();
        let run = self.run(&*self.sides.eager, fresh);
        self.count(started, |calls| calls.eager += 1);
        run.map_err(eager_failure)
    }

    /// Runs the candidate on inputs that nothing else uses.
    pub(super) fn run_candidate(&self, fresh: Vec<Value>) -> Result<Run, Box<Verdict>> {
        let started = Instant::now();
        let run = self.run(&*self.sides.candidate, fresh);
        self.count(started, |calls| calls.candidate += 1);
        run.map_err(candidate_failure)
    }

    /// The calls of both sides so far, one after the other.
    pub(super) fn calls(&self) -> Calls {
        *self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn count(&self, started: Instant, side: impl FnOnce(&mut Calls)) {
        let mut calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        calls.seconds += started.elapsed().as_secs_f64();
        side(&mut calls);
    }

    /// Does work beside other work of the harness: on this thread alone where calls are short, for then there is other
    /// work for every thread.
    pub(super) fn beside_others<R>(&self, work: impl FnOnce() -> R) -> R {
        let calls = self.calls();
        let seconds = calls.seconds / (calls.eager + calls.candidate).max(1) as f64;
        if seconds < SHORT_CALL { without_helpers(work) } else { work() }
    }

    /// The outputs in float64, and the inputs as such a run leaves them where the graph writes into them; `None` where
    /// the engine cannot give them.
    pub(super) fn run_oracle(&self, inputs: &[Value]) -> Result<Option<Vec<Tensor>>, Box<Verdict>> {
        let Some(oracle) = &self.sides.oracle else { return Ok(None) };
        let inputs = self.widened(inputs).map_err(harness_failure)?;
        let run = self.run(&**oracle, inputs);
        Ok(run.ok().and_then(|run| run.tensors(self.sides.writes_inputs).ok()))
    }

    /// How far the float64 result moves when these inputs move by their last bit: all larger, and, several times, each
    /// larger or smaller by chance.
    pub(super) fn moves(
        &self,
        inputs: &[Value],
        truth: &[Flat<'_>],
    ) -> Result<Moves, Box<Verdict>> {
        let mut dice = self.secret.dice("moved inputs");
        let keys = std::iter::once(None).chain((0..MOVED_BY_CHANCE).map(|_| Some(dice.number())));
        let mut moves = Moves::none(truth);
        for key in keys {
            let run = |by| {
                let moved = inputs.iter().map(|value| moved(value, by, key));
                let moved = moved.collect::<TensorResult<Vec<_>>>();
                self.run_oracle(&moved.map_err(harness_failure)?)
            };
            if let (Some(by_bit), Some(by_less)) = (run(Move::Bit)?, run(Move::Less)?) {
                let flats = |tensors| Flat::all(tensors).map_err(harness_failure);
                moves.add(truth, &flats(&by_bit)?, &flats(&by_less)?);
            }
        }
        Ok(moves)
    }

    /// Wide before the run, so that what the graph writes into its inputs is written into these.
    fn widened(&self, inputs: &[Value]) -> TensorResult<Vec<Value>> {
        let wide = |value: &Value| match value {
            Value::Tensor(tensor) => {
                let dtype = Precision::Double.of(tensor.dtype());
                let copy = match (dtype == tensor.dtype(), self.sides.writes_inputs) {
                    (true, true) => tensor.copy(),
                    _ => tensor.to_dtype(dtype),
                };
                copy.map(Value::Tensor)
            }
            other => Ok(other.clone()),
        };
        inputs.iter().map(wide).collect()
    }

    fn run(&self, side: &dyn Prepared, inputs: Vec<Value>) -> Result<Run, EngineError> {
        let outputs = side.run(&inputs, &self.run_options())?;
        Ok(Run { outputs, inputs })
    }
}

/// What moves little in one run by chance moves in another.
const MOVED_BY_CHANCE: usize = 4;

/// Bytes that the elements of all tensors take.
pub(super) fn bytes_of(values: &[Value]) -> usize {
    let tensors = values.iter().filter_map(Value::as_tensor);
    tensors.map(|tensor| tensor.numel().saturating_mul(tensor.dtype().size())).sum()
}

/// Fresh tensors with the same values.
pub(super) fn copies(inputs: &[Value]) -> TensorResult<Vec<Value>> {
    inputs
        .iter()
        .map(|input| match input {
            Value::Tensor(tensor) => tensor.copy().map(Value::Tensor),
            other => Ok(other.clone()),
        })
        .collect()
}

/// What a graph's inputs may be, and draws of them.
#[derive(Debug)]
pub(super) struct Drawn {
    pub(super) drawer: InputDrawer,
    pub(super) draws: Vec<Vec<Value>>,
}

impl Drawn {
    pub(super) fn new(
        files: &GraphFiles,
        graph: &Graph,
        options: &EvaluateOptions,
        secret: &Secret,
    ) -> Result<Drawn, Box<Verdict>> {
        let failed = |error: InputError| {
            Box::new(Verdict::new(VerdictKind::ReferenceFail).because(error.to_string()))
        };
        let drawer = InputDrawer::new(files, graph, None).map_err(failed)?;
        let mut dice = secret.dice("draws");
        let seeds: Vec<u64> = (0..=options.draws).map(|_| dice.number()).collect();
        let draws = seeds.into_par_iter().map(|seed| drawer.draw(seed)).collect::<Result<_, _>>();
        Ok(Drawn { draws: draws.map_err(failed)?, drawer })
    }
}

/// An input, moved where it is of floats.
fn moved(value: &Value, by: Move, key: Option<u64>) -> TensorResult<Value> {
    let Some(tensor) = value.as_tensor().filter(|tensor| tensor.dtype().is_float()) else {
        return Ok(value.clone());
    };
    let wide = tensor.to_dtype(Precision::Double.of(tensor.dtype()))?;
    oracle::moved(&wide, by, key).map(Value::Tensor)
}
