//! Where the time of a graph goes: time, bytes and FLOPs of every node, against what this machine can do.

use super::Result;
use super::executor::{NodeTime, Observer, Program, Step};
use super::ops::matmul;
use super::tensor::{Scalar, Tensor};
use crate::engine::{EngineError, RunOptions, Value};
use passnet_graph::DType;
use passnet_graph::ops::{Class, Op};
use std::time::{Duration, Instant};

/// What one node cost.
#[derive(Debug, Clone, PartialEq)]
pub struct NodeCost {
    pub name: String,
    pub operation: String,
    pub line: u32,
    pub class: &'static str,
    /// The shortest of all runs.
    pub time: Duration,
    /// Bytes of the tensors it reads and of those it makes; none for a view.
    pub bytes: u64,
    pub flops: u64,
}

/// What this machine can do, measured.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rates {
    /// Bytes a second of a large copy, read and written.
    pub bandwidth: f64,
    /// Floating-point operations a second of a large float32 matrix product.
    pub peak: f64,
}

impl Rates {
    /// Copies 64 MiB and multiplies matrices of 1024, the best of a few tries each.
    pub fn measure() -> Result<Self> {
        const BYTES: usize = 64 << 20;
        const SIDE: usize = 1024;
        let source = Tensor::full(&[BYTES / 4], Scalar::Float(1.0), DType::Float32)?;
        let target = Tensor::zeros(&[BYTES / 4], DType::Float32)?;
        let copy = best_of(5, || target.copy_from(&source))?;
        let matrix = Tensor::full(&[SIDE, SIDE], Scalar::Float(0.5), DType::Float32)?;
        let product = best_of(3, || matmul::mm(&matrix, &matrix).map(drop))?;
        Ok(Rates {
            bandwidth: 2.0 * BYTES as f64 / copy.as_secs_f64(),
            peak: 2.0 * (SIDE as f64).powi(3) / product.as_secs_f64(),
        })
    }
}

fn best_of(tries: usize, mut work: impl FnMut() -> Result<()>) -> Result<Duration> {
    let mut best = Duration::MAX;
    for _ in 0..tries {
        let start = Instant::now();
        work()?;
        best = best.min(start.elapsed());
    }
    Ok(best)
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
                flops: step.op().map_or(0, |op| flops(op, time)),
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

/// Multiplications and additions; one for each element where the operation is no sum of products.
fn flops(op: Op, time: &NodeTime<'_>) -> u64 {
    let made = elements(time.result);
    let argument = |index: usize| time.arguments.get(index).and_then(|value| value.as_tensor());
    let last =
        |index: usize| argument(index).and_then(|t| t.shape().last().copied()).unwrap_or(1) as u64;
    match op {
        Op::Linear | Op::Matmul | Op::Mm | Op::Bmm | Op::Mv | Op::Dot => 2 * made * last(0),
        Op::Addmm | Op::Baddbmm | Op::Addbmm => 2 * made * last(1),
        Op::Conv1d | Op::Conv2d | Op::Conv3d => {
            let taps = argument(1).map_or(1, |w| w.shape()[1..].iter().product::<usize>()) as u64;
            2 * made * taps
        }
        Op::ConvTranspose1d | Op::ConvTranspose2d | Op::ConvTranspose3d => {
            let taps = argument(1).map_or(1, |w| w.shape()[1..].iter().product::<usize>()) as u64;
            2 * argument(0).map_or(0, |x| x.numel() as u64) * taps
        }
        Op::ScaledDotProductAttention => {
            let keys =
                argument(1).and_then(|k| k.shape().iter().rev().nth(1).copied()).unwrap_or(1);
            4 * made * keys as u64
        }
        op => match op.class() {
            Class::Pointwise => made,
            Class::Reduction | Class::Normalisation | Class::Pooling | Class::Scan => {
                time.arguments.first().map_or(0, |value| elements(value))
            }
            _ => 0,
        },
    }
}
