//! Where the time of a graph goes: time, bytes and FLOPs of every node, against what this machine can do.

use super::Result;
use super::executor::{NodeTime, Observer, Program, Step};
use super::tensor::Tensor;
use crate::engine::{EngineError, RunOptions, Value};
use passnet_graph::ops::{Class, Op, flops};
use std::time::Duration;

/// What one node cost.
#[derive(Debug, Clone, PartialEq)]
pub struct NodeCost {
    /// The node's name.
    pub name: String,
    /// The operation as the graph spells it.
    pub operation: String,
    /// The line in the graph's text.
    pub line: u32,
    /// The class of the operation, `pass` for a replaced region.
    pub class: &'static str,
    /// The shortest of all runs.
    pub time: Duration,
    /// Bytes of the tensors it reads and of those it makes; none for a view.
    pub bytes: u64,
    /// Floating-point operations, where they can be counted.
    pub flops: u64,
}

struct Recorder {
    costs: Vec<NodeCost>,
    next: usize,
}

impl Observer for Recorder {
    const ACTIVE: bool = true;

    fn node(&mut self, step: &Step, time: &NodeTime<'_>) {
        if let Some(known) = self.costs.get_mut(self.next) {
            known.time = known.time.min(time.elapsed);
        } else {
            self.costs.push(NodeCost {
                name: step.name.to_string(),
                operation: step.operation.to_string(),
                line: step.line,
                class: step.op().map_or("pass", |op| op.class().name()),
                time: time.elapsed,
                bytes: bytes(step, time),
                flops: step.op().map_or(0, |op| arithmetic(op, time)),
            });
        }
        self.next += 1;
    }
}

/// Runs a program `runs` times and keeps each node's best time. Inputs are copied for every run.
pub fn profile(
    program: &Program,
    inputs: &[Value],
    options: &RunOptions,
    runs: usize,
) -> std::result::Result<Vec<NodeCost>, EngineError> {
    let mut recorder = Recorder { costs: Vec::new(), next: 0 };
    for _ in 0..runs.max(1) {
        let copies = inputs
            .iter()
            .map(fresh)
            .collect::<Result<Vec<_>>>()
            .map_err(|error| EngineError::graph((&error).into(), error.to_string()))?;
        recorder.next = 0;
        program.run_observed(&copies, options, &mut recorder)?;
    }
    Ok(recorder.costs)
}

fn fresh(value: &Value) -> Result<Value> {
    match value {
        Value::Tensor(tensor) => tensor.copy().map(Value::Tensor),
        other => Ok(other.clone()),
    }
}

fn size(value: &Value) -> u64 {
    let mut total = 0;
    value.for_each_tensor(&mut |tensor| total += (tensor.numel() * tensor.dtype().size()) as u64);
    total
}

fn elements(value: &Value) -> u64 {
    let mut total = 0;
    value.for_each_tensor(&mut |tensor| total += tensor.numel() as u64);
    total
}

fn bytes(step: &Step, time: &NodeTime<'_>) -> u64 {
    if matches!(step.op().map(Op::class), Some(Class::Scalar | Class::Effect)) || is_view(time) {
        return 0;
    }
    time.arguments.iter().map(|value| size(value)).sum::<u64>() + size(time.result)
}

/// Whether the result is memory that an argument already had.
fn is_view(time: &NodeTime<'_>) -> bool {
    let Value::Tensor(result) = time.result else { return false };
    time.arguments.iter().any(|value| {
        matches!(&**value, Value::Tensor(argument)
            if argument.shares_storage(result) && argument.region() != result.region())
    })
}

fn arithmetic(op: Op, time: &NodeTime<'_>) -> u64 {
    let shape = |tensor: &Tensor| tensor.shape().iter().map(|size| *size as u64).collect();
    let shapes: Vec<Option<Vec<u64>>> =
        time.arguments.iter().map(|value| value.as_tensor().map(shape)).collect();
    flops(op, &shapes, elements(time.result))
}
