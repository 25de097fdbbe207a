//! A graph that a worker holds.

use super::frames::Frame;
use super::host::{Host, State};
use super::planner::PlanMaker;
use super::wire::{self, Outgoing};
use super::worker::{Worker, refusal};
use crate::engine::{EngineError, ErrorKind, GraphCompiler, InductorMode, RunOptions, Value};
use serde_json::{Value as Json, json};
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Compiling with TorchInductor happens inside the first call.
const COMPILE_LIMIT: Duration = Duration::from_secs(300);
/// It takes longer where kernels are chosen by measuring.
const AUTOTUNE_LIMIT: Duration = Duration::from_secs(1800);

/// A graph that the worker runs.
pub(super) struct TorchGraph {
    pub(super) host: Arc<Host>,
    pub(super) id: u64,
    pub(super) text: String,
    /// `None` for the graph as it is.
    pub(super) compiler: Option<GraphCompiler>,
    pub(super) plans: Mutex<PlanMaker>,
    /// Which placeholders are plain integers.
    pub(super) numbers: Vec<bool>,
    pub(super) writes_inputs: bool,
    /// The same graph here, for watching its kernels.
    pub(super) native: Result<crate::native::Program, EngineError>,
}

impl fmt::Debug for TorchGraph {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TorchGraph")
            .field("id", &self.id)
            .field("compiler", &self.compiler)
            .finish()
    }
}

impl Drop for TorchGraph {
    fn drop(&mut self) {
        let mut state = self.host.lock();
        if state.loaded.remove(&self.id)
            && let Some(worker) = &mut state.worker
        {
            let drop = json!({"call": "drop", "graph": self.id});
            let limit = self.host.options.call_limit;
            let _ = worker.request(drop, &[], limit, &mut |_| (json!({}), Vec::new()));
        }
    }
}

impl TorchGraph {
    /// The error with the name of the node at its line: the worker knows lines of the text that it was given.
    fn named(&self, mut error: EngineError) -> EngineError {
        let number = usize::try_from(std::mem::take(&mut error.line)).unwrap_or(0);
        let line = number.checked_sub(1).and_then(|index| self.text.lines().nth(index));
        if let Some((node, call)) = line.and_then(|line| line.split_once(" = ")) {
            error.node = node.trim().to_string();
            error.operation = call.split('(').next().unwrap_or(call).to_string();
        }
        error
    }

    pub(super) fn limit(&self, options: &RunOptions) -> Duration {
        let limit = options.time_limit.unwrap_or_default().max(self.host.options.call_limit);
        match self.compiler {
            Some(GraphCompiler::Inductor(mode)) => limit.max(compile_limit(mode)),
            _ => limit,
        }
    }

    pub(super) fn inputs(
        &self,
        inputs: &[Value],
        out: &mut Outgoing,
    ) -> Result<Vec<Json>, EngineError> {
        let described = inputs.iter().zip(&self.numbers).map(|(value, is_number)| match value {
            Value::Tensor(tensor) if *is_number => {
                let number = tensor.item().map_err(|error| wire::tensor_error(&error))?;
                out.value(&Value::Number(number))
            }
            value => out.value(value),
        });
        described.collect()
    }

    /// Works with a worker that knows the graph. A worker that falls is forgotten.
    pub(super) fn with<R>(
        &self,
        work: impl FnOnce(&mut Worker, &mut PlanMaker) -> Result<R, EngineError>,
    ) -> Result<R, EngineError> {
        let mut state = self.host.living()?;
        let State { worker: Some(worker), loaded, .. } = &mut *state else {
            return Err(EngineError::graph(ErrorKind::Machine, "there is no worker"));
        };
        let mut plans = self.plans.lock().unwrap_or_else(PoisonError::into_inner);
        let mut result = Ok(());
        if !loaded.contains(&self.id) {
            let load = json!({
                "call": "load",
                "graph": self.id,
                "text": self.text,
                "plans": plans.count(),
                "compiler": worker_compiler(self.compiler),
                "writes_inputs": self.writes_inputs,
            });
            result =
                answer(worker, load, &[], self.host.options.call_limit, &mut plans).map(|_| ());
            if result.is_ok() {
                loaded.insert(self.id);
            }
        }
        let result = result.and_then(|()| work(worker, &mut plans));
        let result = result.map_err(|error| self.named(error));
        if !worker.is_alive() {
            state.worker = None;
        }
        state.note(&result);
        result
    }
}

/// One request and its reply; a refusal is an error.
pub(super) fn answer(
    worker: &mut Worker,
    message: Json,
    parts: &[Vec<u8>],
    limit: Duration,
    plans: &mut PlanMaker,
) -> Result<Frame, EngineError> {
    let frame = worker.request(message, parts, limit, &mut |question| plans.answer(question))?;
    match refusal(&frame.message) {
        None => Ok(frame),
        Some(error) => Err(error),
    }
}

/// What the worker makes of a graph: the compiler's name, and the mode of one that has modes.
fn worker_compiler(compiler: Option<GraphCompiler>) -> Json {
    match compiler {
        Some(GraphCompiler::Inductor(mode)) => json!({ "name": "inductor", "mode": mode.name() }),
        Some(other) => json!({ "name": other.name() }),
        None => json!({ "name": "eager" }),
    }
}

fn compile_limit(mode: InductorMode) -> Duration {
    match mode {
        InductorMode::Default | InductorMode::ReduceOverhead => COMPILE_LIMIT,
        InductorMode::MaxAutotune | InductorMode::MaxAutotuneNoCudagraphs => AUTOTUNE_LIMIT,
    }
}
