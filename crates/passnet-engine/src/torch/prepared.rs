//! Calls of a graph that a worker holds, and what comes back.

use super::frames::Frame;
use super::graph::{TorchGraph, answer};
use super::staged::StagedGraphs;
use super::wire::{self, Outgoing};
use crate::engine::{EngineError, Prepared, RunOptions, Staged, Tier, Tolerances, Value};
use crate::native::Tensor;
use crate::tuning::TunedKernel;
use passnet_kernel::check::Finding;
use serde_json::{Map, Value as Json, json};
use std::sync::PoisonError;

impl Prepared for TorchGraph {
    fn stops_endless_kernels(&self) -> bool {
        false
    }

    fn run(&self, inputs: &[Value], options: &RunOptions) -> Result<Vec<Value>, EngineError> {
        let mut out = Outgoing::default();
        let described = self.inputs(inputs, &mut out)?;
        let message = json!({
            "call": "run",
            "graph": self.id,
            "inputs": described,
            "seed": options.seed,
        });
        let frame = self.with(|worker, plans| {
            answer(worker, message, &out.parts, self.limit(options), plans)
        })?;
        outputs(&frame, inputs).ok_or_else(|| self.host.garbled())
    }

    fn remote_number(&self) -> Option<u64> {
        Some(self.id)
    }

    fn tier(&self) -> Tier {
        self.plans.lock().unwrap_or_else(PoisonError::into_inner).tier()
    }

    fn tuned(&self) -> Vec<TunedKernel> {
        self.plans.lock().unwrap_or_else(PoisonError::into_inner).tuned()
    }

    fn stage<'a>(
        &'a self,
        eager: &'a dyn Prepared,
        draws: &[Vec<Value>],
        tolerances: &Tolerances,
        options: &RunOptions,
    ) -> Result<Option<Box<dyn Staged + 'a>>, EngineError> {
        let Some(eager) = eager.remote_number() else { return Ok(None) };
        let by_name = tolerances.iter().map(|(dtype, levels)| (dtype.name().into(), json!(levels)));
        let tolerances = Json::Object(by_name.collect());
        for (index, inputs) in draws.iter().enumerate() {
            let mut out = Outgoing::default();
            let described = self.inputs(inputs, &mut out)?;
            let message = json!({
                "call": "stage",
                "graph": self.id,
                "draw": index,
                "inputs": described,
                "tolerances": tolerances,
            });
            self.with(|worker, plans| {
                answer(worker, message, &out.parts, self.limit(options), plans)
            })?;
        }
        Ok(Some(Box::new(StagedGraphs { candidate: self, eager, options: options.clone() })))
    }

    fn check(&self, inputs: &[Value], options: &RunOptions) -> Result<Vec<Finding>, EngineError> {
        match &self.native {
            Ok(program) => program.check(inputs, options),
            Err(error) => Err(error.clone()),
        }
    }
}

/// The outputs of a reply; inputs that the run changed are changed here too.
fn outputs(frame: &Frame, inputs: &[Value]) -> Option<Vec<Value>> {
    let entries = |key: &str| -> Option<Vec<&Map<String, Json>>> {
        frame.message.get(key)?.as_array()?.iter().map(Json::as_object).collect()
    };
    let input = |entry: &Map<String, Json>, key: &str| -> Option<&Tensor> {
        let index = entry.get(key)?.as_u64()?;
        inputs.get(usize::try_from(index).ok()?)?.as_tensor()
    };
    for entry in entries("changed")? {
        input(entry, "index")?.copy_from(&wire::tensor(entry, &frame.bytes)?).ok()?;
    }
    let described = entries("outputs")?;
    let contents: Option<Vec<Tensor>> =
        described.iter().map(|entry| wire::tensor(entry, &frame.bytes)).collect();
    let mut outputs = wire::laid_out(&described, contents?)?;
    for (output, entry) in outputs.iter_mut().zip(&described) {
        if let Some(view) = input(entry, "input").and_then(|i| wire::view_of(i, entry, output)) {
            *output = view;
        }
    }
    Some(outputs.into_iter().map(Value::Tensor).collect())
}
