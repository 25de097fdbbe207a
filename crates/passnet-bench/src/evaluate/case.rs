//! A graph and its rewritten form, prepared, with the inputs both will see.

use super::tensors::Flat;
use super::{EvaluateOptions, candidate_failure, eager_failure};
use crate::verdict::{Verdict, VerdictKind};
use passnet_engine::native::folder::draw_inputs;
use passnet_engine::native::{Result as TensorResult, Wrappers};
use passnet_engine::{Engine, EngineError, Precision, Prepared, RunOptions, Value};
use passnet_graph::graph::effects::Effects;
use passnet_graph::{DType, Graph, GraphFiles};
use rayon::prelude::*;
use std::time::Duration;

/// The reference seeds its generator with this before every call.
const CALL_SEED: u64 = 1024;

/// Both sides of an evaluation.
#[derive(Debug)]
pub(super) struct Case {
    pub(super) eager: Box<dyn Prepared>,
    pub(super) candidate: Box<dyn Prepared>,
    /// The graph in float64; `None` where the engine cannot.
    oracle: Option<Box<dyn Prepared>>,
    /// Whether there is a candidate at all, or eager plays both parts.
    pub(super) is_rewritten: bool,
    /// One set of inputs per draw.
    pub(super) draws: Vec<Vec<Value>>,
    /// Whether the graph writes into its inputs, so that every run needs copies.
    pub(super) writes_inputs: bool,
    pub(super) memory_limit: usize,
    call_seconds: f64,
    pub(super) thorough: bool,
}

/// What one run gave.
#[derive(Debug)]
pub(super) struct Run {
    pub(super) outputs: Vec<Value>,
    /// The inputs as the run left them.
    pub(super) inputs: Vec<Value>,
}

impl Run {
    /// The outputs and, where the graph writes into its inputs, those too.
    pub(super) fn flat(&self, with_inputs: bool) -> TensorResult<Vec<Flat>> {
        let mut flats = Flat::outputs(&self.outputs)?;
        if with_inputs {
            flats.extend(Flat::outputs(&self.inputs)?);
        }
        Ok(flats)
    }
}

impl Case {
    pub(super) fn new(
        engine: &dyn Engine,
        files: &GraphFiles,
        graph: &Graph,
        rewritten: Option<(Graph, &Wrappers)>,
        options: &EvaluateOptions,
    ) -> Result<Case, Box<Verdict>> {
        let none = Wrappers::default();
        let eager = engine
            .prepare(graph, Precision::AsWritten, &none)
            .map_err(|error| eager_failure(&error))?;
        let is_rewritten = rewritten.is_some();
        let candidate = match rewritten {
            Some((graph, wrappers)) => engine
                .prepare(&graph, Precision::AsWritten, wrappers)
                .map_err(|error| candidate_failure(&error))?,
            None => engine
                .prepare(graph, Precision::AsWritten, &none)
                .map_err(|error| eager_failure(&error))?,
        };
        let draws = (0..=options.draws as u64)
            .into_par_iter()
            .map(|draw| draw_inputs(files, graph, options.seed.wrapping_add(draw), None))
            .collect::<Result<Vec<_>, _>>()
            .map_err(|error| Verdict::new(VerdictKind::ReferenceFail).because(error.to_string()))?;
        let effects = Effects::of(graph);
        let writes_inputs = graph.calls().any(|(id, _)| {
            effects.writes(id).any(|written| written.index() < graph.placeholder_count())
        });
        Ok(Case {
            eager,
            candidate,
            oracle: engine.prepare(graph, Precision::Double, &none).ok(),
            is_rewritten,
            draws,
            writes_inputs,
            memory_limit: options.memory_limit,
            call_seconds: options.call_seconds.clamp(0.0, 1e6),
            thorough: options.thorough,
        })
    }

    /// The type of the first float input.
    pub(super) fn dtype(&self) -> String {
        let mut tensors = self.draws[0].iter().filter_map(Value::as_tensor).map(|t| t.dtype());
        tensors.find(|dtype| dtype.is_float()).unwrap_or(DType::Int64).name().to_string()
    }

    pub(super) fn run_options(&self, poison: bool) -> RunOptions {
        RunOptions {
            seed: CALL_SEED,
            memory_limit: self.memory_limit,
            poison,
            time_limit: Some(Duration::from_secs_f64(self.call_seconds)),
        }
    }

    /// Runs eager on inputs that nothing else uses.
    pub(super) fn run_eager(&self, fresh: Vec<Value>) -> Result<Run, Box<Verdict>> {
        self.run(&*self.eager, fresh, false).map_err(|error| eager_failure(&error))
    }

    /// Runs the candidate with its uninitialised memory poisoned.
    pub(super) fn run_candidate(&self, fresh: Vec<Value>) -> Result<Run, Box<Verdict>> {
        self.run(&*self.candidate, fresh, true).map_err(|error| candidate_failure(&error))
    }

    /// The outputs in float64; `None` where the engine cannot give them.
    pub(super) fn run_oracle(&self, fresh: Vec<Value>) -> Option<Vec<Flat>> {
        let run = self.run(&**self.oracle.as_ref()?, fresh, false).ok()?;
        run.flat(self.writes_inputs).ok()
    }

    fn run(
        &self,
        side: &dyn Prepared,
        inputs: Vec<Value>,
        poison: bool,
    ) -> Result<Run, EngineError> {
        let outputs = side.run(&inputs, &self.run_options(poison))?;
        Ok(Run { outputs, inputs })
    }
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
